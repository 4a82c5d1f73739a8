"""Which algorithms a sweep compares, and what it has to run for them."""

import pytest

from mpilab.errors import InputError
from mpilab.kernels import openmpi
from mpilab.measure.guard import choose, known
from mpilab.measure.openmpi_traffic import PATTERNS
from mpilab.measure.sweep import Plan, times_of


def names(algorithms):
    return [str(algorithm) for algorithm in algorithms]


def test_open_mpi_itself_says_which_algorithms_it_has():
    found = openmpi.algorithms()
    assert found["bcast"][0] == "default"
    assert found["bcast"][6] == "binomial"
    assert found["barrier"][5] == "two_proc"


def test_the_messages_of_every_algorithm_that_open_mpi_has_are_known():
    for collective, patterns in PATTERNS.items():
        listed = set(openmpi.algorithms()[collective].values()) - {"default"}
        assert listed == set(patterns), collective


def test_a_group_is_all_of_a_library_and_its_members_go_by_name_or_number():
    everything, _ = choose("gather", "ours,openmpi")
    assert list(everything) == known("gather")
    assert names(everything)[:1] == ["ours:linear"]
    chosen, named = choose("gather", ["openmpi:2", "ours:binomial", "openmpi:default"])
    assert names(chosen) == ["openmpi:binomial", "ours:binomial", "openmpi:default"]
    assert [algorithm.number for algorithm in chosen] == [2, -1, 0]
    assert named == set(chosen)


def test_an_algorithm_that_is_named_twice_is_taken_once():
    chosen, _ = choose("bcast", "openmpi:6,openmpi:binomial,ours:binomial")
    assert names(chosen) == ["openmpi:binomial", "ours:binomial"]


@pytest.mark.parametrize("word", ["ours:fastest", "openmpi:99", "ours:-1", "theirs", "openmpi:"])
def test_a_name_that_is_not_there_is_told_with_those_that_are(word):
    with pytest.raises(InputError, match="basic_linear|linear_sync|write 'ours'"):
        choose("gather", word)


def test_two_proc_is_left_out_of_the_group_but_refused_by_name_for_other_than_two_ranks():
    plan = Plan.make("barrier", [2, 3], None, "openmpi")
    with_two = {p.ranks for p in plan.points() if p.algorithm.name == "two_proc"}
    assert with_two == {2}
    with pytest.raises(
        InputError, match="two_proc: Open MPI aborts unless there are 2 ranks.*--ranks 2"
    ):
        Plan.make("barrier", [2, 3], None, "openmpi:5")


def test_what_is_added_up_comes_in_numbers_of_four_bytes():
    assert Plan.make("reduce", [2], "1:16", "ours").sizes == (4, 8, 16)
    assert Plan.make("bcast", [2], "1:4", "ours").sizes == (1, 2, 4)
    assert Plan.make("barrier", [2], "1:16", "ours").sizes == (0,)
    with pytest.raises(InputError, match="6: reduce adds numbers of 4 bytes"):
        Plan.make("reduce", [2], "4,6", "ours")


def test_options_that_make_no_sense_are_refused_before_anything_runs():
    for wrong, words in (
        ({"repetitions": 0}, "repetitions=0"),
        ({"warmup": -1}, "warmup=-1"),
        ({"root": 2}, "root=2"),
        ({"radix": 1}, "radix=1"),
        ({"segment": -8}, "segment=-8"),
    ):
        with pytest.raises(InputError, match=words):
            Plan.make("bcast", [2, 4], "1:4", "ours", **wrong)
    with pytest.raises(InputError, match="'gossip' is unknown"):
        Plan.make("gossip", [2], "1", "ours")
    with pytest.raises(InputError, match="root=1: barrier has no root"):
        Plan.make("barrier", [2], None, "ours", root=1)


def test_the_algorithms_of_a_size_run_one_after_the_other():
    plan = Plan.make("bcast", [2], "1,2", "ours:linear,openmpi:1")
    assert [(str(p.algorithm), p.bytes) for p in plan.points()] == [
        ("ours:linear", 1),
        ("openmpi:basic_linear", 1),
        ("ours:linear", 2),
        ("openmpi:basic_linear", 2),
    ]


def test_long_messages_and_shared_cores_are_timed_less_often():
    assert times_of(8192, 2, cores=2) == (250, 25)
    assert times_of(8193, 2, cores=2) == (25, 20)
    assert times_of(8, 8, cores=2) == (62, 6)
    assert times_of(1 << 20, 64, cores=2) == (20, 3)
    plan = Plan.make("bcast", [2], "1", "ours", repetitions=1000, warmup=100)
    assert plan.times(plan.points()[0]) == (1000, 100)
