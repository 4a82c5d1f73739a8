"""What links carry: small examples by hand, and recordings against the counts of the judge."""

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.hosts import links
from mpilab.hosts.description import Description, Link
from mpilab.hosts.links import GROUP, MEMORY, NODE, busiest, by_round, loads, lower_bound
from mpilab.hosts.places import Levels, Place
from mpilab.kernels.build import KERNELS
from mpilab.models.declared import counts
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE

# Hosts 1 and 2 of groups a and b; two ranks on a1.
LEVELS = Levels((Place("n1", "a"), Place("n3", "b"), Place("n1", "a"), Place("n2", "a")))
VOLUME = np.array(
    [
        [0, 100, 7, 20],  # to n3 in b, to the same node, to n2 in a
        [0, 0, 0, 3],
        [0, 50, 0, 0],
        [0, 0, 0, 0],
    ]
)
TIMES = (VOLUME > 0) * 2


def described(host=None, group=None):
    return Description("d", "", (), host_link=Link(host), group_link=Link(group))


def carried(found, what="bytes"):
    return {load.name: getattr(load, what) for load in found}


def test_a_message_is_on_every_link_of_its_way_and_on_no_other():
    assert carried(loads(VOLUME, LEVELS)) == {
        "switch a → core": 150,
        "core → switch a": 3,
        "switch b → core": 3,
        "core → switch b": 150,
        "n1 → switch a": 170,
        "switch a → n1": 0,
        "n3 → switch b": 3,
        "switch b → n3": 150,
        "n2 → switch a": 0,
        "switch a → n2": 23,
        "memory of n1": 7,
        "memory of n3": 0,
        "memory of n2": 0,
    }


def test_messages_are_counted_where_they_are_known():
    found = loads((TIMES, VOLUME), LEVELS)
    assert carried(found) == carried(loads(VOLUME, LEVELS))
    assert carried(found, "messages")["n1 → switch a"] == 6
    assert carried(found, "messages")["memory of n1"] == 2
    assert {load.messages for load in loads(VOLUME, LEVELS)} == {None}


def test_sums_are_exact_beyond_the_whole_numbers_of_a_float():
    large = np.zeros((2, 2), np.int64)
    large[0, 1] = 2**53 + 1
    apart = Levels((Place("n1"), Place("n2")))
    assert carried(loads(large, apart))["n1 → switch"] == 2**53 + 1


def test_one_group_has_one_switch_and_no_core():
    found = loads(VOLUME, Levels((Place("n1"), Place("n2"), Place("n1"), Place("n3"))))
    assert {load.level for load in found} == {NODE, MEMORY}
    assert "n1 → switch" in carried(found)


def test_nodes_of_one_name_in_two_groups_are_told_apart():
    levels = Levels((Place("n1", "a"), Place("n1", "b")))
    assert links.node_names(levels) == ["n1@a", "n1@b"]
    assert carried(loads(np.array([[0, 5], [0, 0]]), levels))["n1@a → switch a"] == 5


def test_the_busiest_link_carries_most_bytes_or_takes_longest_where_rates_are_known():
    found = loads((TIMES, VOLUME), LEVELS)
    assert [load.name for load in busiest(found)] == ["n1 → switch a"]
    slow_core = described(host=1e9, group=2e8)
    assert [load.name for load in busiest(found, slow_core)] == [
        "switch a → core",
        "core → switch b",
    ]


def test_nothing_is_busiest_where_nothing_leaves_a_node():
    inside = np.zeros((4, 4), int)
    inside[0, 2] = 9
    assert busiest(loads(inside, LEVELS)) == ()
    assert lower_bound(described(1e9, 1e9), LEVELS, inside) == links.Bound(0.0, None)


def test_among_empty_messages_the_link_with_most_of_them_is_busiest():
    found = loads((TIMES, np.zeros_like(VOLUME)), LEVELS)
    assert [(load.name, load.messages) for load in busiest(found)] == [("n1 → switch a", 6)]


@pytest.mark.parametrize(
    "host, group, seconds, name",
    [
        (1e9, 2e8, 150 * 8 / 2e8, "switch a → core"),
        (1e6, 2e8, 170 * 8 / 1e6, "n1 → switch a"),
        (None, 1e6, 150 * 8 / 1e6, "switch a → core"),
    ],
)
def test_the_lower_bound_is_the_time_of_the_link_that_takes_longest(host, group, seconds, name):
    bound = lower_bound(described(host, group), LEVELS, VOLUME)
    assert (bound.seconds, bound.load.name) == (seconds, name)


def test_links_without_a_rate_set_no_bound():
    assert lower_bound(described(), LEVELS, VOLUME) == links.Bound(0.0, None)


@pytest.mark.parametrize(
    "matrix, said",
    [
        (VOLUME[:3, :3], r"shape \(3, 3\) for 4 ranks"),
        (VOLUME * 0.5, "whole numbers"),
        (-VOLUME, "minimum -100"),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused(matrix, said):
    with pytest.raises(InputError, match=said):
        loads(matrix, LEVELS)


# --- Recordings


def placed(hosts):
    return tuple(Place(name, name[0]) for name in hosts.split())


PLACES = {
    "seq": placed("a1 a1 a2 a2 b1 b1 b2 b2"),
    "rr": placed("a1 a2 b1 b2 a1 a2 b1 b2"),
    "uneven": placed("b1 a1 a1 a1 c1 a2 a1 b1"),
}
KERNELS_TRIED = (
    "bcast_binomial",
    "bcast_node_group",
    "allgather_ring",
    "reduce_binomial",
    "barrier_dissemination",
)


@pytest.fixture(scope="module")
def results():
    cases = [
        Case(
            function.partition("_")[0],
            8,
            0 if "barrier" in function else 300,
            function=function,
            places=places,
        )
        for function in KERNELS_TRIED
        for places in PLACES.values()
    ]
    found = run_cases(KERNELS, "", cases, limit=60.0)
    assert [result.outcome for result in found] == [DONE] * len(cases)
    return found


def total(found, level, up, what):
    return sum(getattr(load, what) for load in found if (load.level, load.up) == (level, up))


def test_the_links_of_a_recording_carry_what_the_judge_counts(results):
    for result in results:
        levels, judged = result.case.levels, counts(result.recording, result.case.levels)
        found = loads(result.recording.matrix(), levels)
        for level, name in ((NODE, "node"), (GROUP, "group")):
            for up in (True, False):
                assert total(found, level, up, "bytes") == judged[f"{name}_bytes"]
                assert total(found, level, up, "messages") == judged[f"{name}_messages"]
        inside = judged["bytes"] - judged["node_bytes"]
        assert total(found, MEMORY, False, "bytes") == inside


def test_messages_carry_what_their_matrix_does_and_rounds_add_up_to_it(results):
    for result in results:
        levels, messages = result.case.levels, result.recording.messages
        found = loads(result.recording.matrix(), levels)
        assert loads(messages, levels) == found
        rounds = by_round(messages, levels)
        assert len(rounds) == result.recording.rounds
        for what in ("bytes", "messages"):
            added = [sum(carried(one, what)[load.name] for one in rounds) for load in found]
            assert added == [getattr(load, what) for load in found]


def test_messages_of_ranks_without_a_place_are_refused(results):
    with pytest.raises(InputError, match="from or to rank 7, but the levels have 4 ranks"):
        loads(results[0].recording.messages, LEVELS)
