"""No row for Open MPI gets a name that its messages do not confirm."""

import re

import numpy as np
import pytest

from mpilab.kernels import openmpi
from mpilab.measure import guard, sweep
from mpilab.measure.guard import Algorithm, choose
from mpilab.measure.openmpi_traffic import PATTERNS, Shape, expected, from_messages

SETTINGS = dict(repetitions=2, warmup=1, progress=False, oversubscribe=True)


def pattern(collective, name, shape):
    return expected(collective, name, shape)[0]


def algorithm(collective, number):
    return choose(collective, f"openmpi:{number}")[0][0]


def refused(collective, words, **options):
    """(rows, sentences) of a sweep."""
    report = sweep.Report()
    table = sweep.sweep(collective, algorithms=words, report=report, **SETTINGS, **options)
    return table, report.warnings()


def test_a_substitution_is_told_by_both_names():
    shape = Shape(5, 8)
    asked = algorithm("allgather", 3)
    said = guard.refuse("allgather", asked, pattern("allgather", "bruck", shape), shape)
    assert said == "asked for recursive_doubling (3), ran like bruck (2)"


def test_the_right_messages_with_the_wrong_bytes_are_refused():
    shape = Shape(4, 100)
    asked = algorithm("bcast", 6)
    right = pattern("bcast", "binomial", shape)
    assert guard.refuse("bcast", asked, right, shape) == ""
    wrong = from_messages(
        4, [(s, d, 99) for s, d in zip(*np.nonzero(right.messages), strict=True)], 1
    )
    said = guard.refuse("bcast", asked, wrong, shape)
    assert said.startswith("asked for binomial (6), ran like no known algorithm (3 messages, 297")


def test_what_open_mpi_does_by_itself_is_found_though_it_does_not_cut():
    shape = Shape(4, 100, segment=10)
    sent = pattern("bcast", "pipeline", Shape(4, 100))
    said = guard.refuse("bcast", algorithm("bcast", 3), sent, shape)
    assert said == "asked for pipeline (3), ran like pipeline (3) without any tuning"


def test_all_algorithms_that_send_the_same_are_named():
    shape = Shape(2, 8)
    sent = pattern("scatter", "binomial", shape)
    assert (
        guard.likeness("scatter", sent, shape) == "basic_linear (1), binomial (2) or linear_nb (3)"
    )
    assert guard.likeness("barrier", pattern("barrier", "bruck", Shape(4)), Shape(4)) == "bruck (4)"


@pytest.mark.parametrize("ranks", range(2, 17))
def test_two_witnesses_can_never_be_the_same_decision(ranks):
    for collective in PATTERNS:
        found = guard.witnesses(collective, ranks)
        first, second = (expected(found.collective, a.name, found.shape) for a in found.algorithms)
        assert first and second
        assert not any(one == other for one in first for other in second)
        assert found.shape.ranks == ranks


def test_witnesses_are_of_the_collective_itself_but_where_all_its_algorithms_send_the_same():
    foreign = {
        (collective, ranks)
        for collective in PATTERNS
        for ranks in (2, 3, 4, 5, 8)
        if guard.witnesses(collective, ranks).collective != collective
    }
    assert foreign == {("scatter", 2), ("scatter", 3)}


def test_one_false_or_missing_witness_is_enough_to_distrust():
    found = guard.witnesses("bcast", 4)
    sent = [pattern("bcast", a.name, found.shape) for a in found.algorithms]
    assert found.refuse(sent) == ""
    assert "ignored the choice" in found.refuse([sent[0], sent[0]])
    assert "ignored the choice" in found.refuse([sent[1], sent[1]])
    assert "could not be run" in found.refuse([sent[0], None])


def test_an_algorithm_that_open_mpi_replaces_gets_no_rows_and_the_others_do():
    table, said = refused(
        "allgather", "openmpi:bruck,openmpi:3,openmpi:neighbor", ranks=[3], sizes="64"
    )
    assert set(table["algorithm"]) == {"bruck"}
    assert said == [
        "openmpi:recursive_doubling with 3 ranks and 64 bytes is omitted: asked for "
        "recursive_doubling (3), ran like bruck (2) or sparbit (7)",
        "openmpi:neighbor with 3 ranks and 64 bytes is omitted: asked for neighbor (5), ran "
        "like ring (4)",
    ]


WRONG = {
    "dynamic rules are off": {"OMPI_MCA_coll_tuned_use_dynamic_rules": "false"},
    # Like HAN across hosts: another component is in charge and ignores the setting.
    "another component is in charge": {"OMPI_MCA_coll_basic_priority": "90"},
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    ("collective", "words"),
    [
        ("bcast", "openmpi:chain,openmpi:5"),
        ("scatter", "openmpi:1,openmpi:2,openmpi:3"),
    ],
)
def test_no_row_gets_a_name_where_open_mpi_does_not_heed_it(monkeypatch, wrong, collective, words):
    for name, value in WRONG[wrong].items():
        monkeypatch.setenv(name, value)
    table, said = refused(collective, f"ours:linear,openmpi:default,{words}", ranks=[2], sizes="64")
    assert set(zip(table["library"], table["algorithm"], strict=True)) == {
        ("ours", "linear"),
        ("openmpi", "default"),
    }
    assert len(said) == words.count(",") + 1
    assert all("ignored the choice: coll_tuned_use_dynamic_rules" in line for line in said)


def test_nor_where_the_name_of_a_setting_is_mistyped(monkeypatch):
    mistyped = dict(openmpi.CHOOSING)
    mistyped["OMPI_MCA_coll_tuned_use_dynamic_rule"] = mistyped.pop(
        "OMPI_MCA_coll_tuned_use_dynamic_rules"
    )
    monkeypatch.setattr(openmpi, "CHOOSING", mistyped)
    table, said = refused("barrier", "openmpi:double_ring,openmpi:tree", ranks=[4])
    assert len(table) == 0
    assert len(said) == 2 and all("ignored the choice" in line for line in said)


def test_without_the_component_or_the_counting_there_is_a_reason_and_no_row(monkeypatch):
    for name, value, words in (
        ("OMPI_MCA_coll", "^tuned,han", "coll_tuned_.*_algorithm: cannot be set.*5.0.6"),
        (
            "OMPI_MCA_pml",
            "^monitoring",
            "pml_monitoring_messages_count: not there.*pml=ob1,monitoring",
        ),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            table, (said,) = refused("gather", "openmpi:2", ranks=[2], sizes="8")
        assert len(table) == 0
        assert re.search(words, said)


def test_the_library_of_an_algorithm_shows_in_its_name():
    assert str(Algorithm("openmpi", "ring", 4)) == "openmpi:ring"
    assert Algorithm("openmpi", "ring", 4).function("bcast") == "bcast_openmpi"
    assert Algorithm("ours", "ring").function("bcast") == "bcast_ring"
    assert not Algorithm("openmpi", "default", 0).is_chosen
