"""Measuring pairs of ranks: where they run, what is returned, and what is rejected."""

import os
from collections import Counter

import pytest

from mpilab.errors import InputError, MpilabError, SetupError
from mpilab.measure.distances import (
    QUANTITIES,
    ROW,
    _check_places,
    measure,
    other_host_options,
    pair_options,
    parse,
    read_machine,
)

TWO_CPUS = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="two ranks need two CPUs to be apart"
)


@TWO_CPUS
def test_every_size_is_measured_in_every_way_as_often_as_asked():
    table = measure(sizes=(0, 8, 100_000), repetitions=3)
    assert table.dtype == ROW
    names = list(read_machine().pairs)
    seen = Counter(zip(table["distance"], table["quantity"], table["bytes"], strict=True))
    assert seen == {
        (name, quantity, size): 3
        for name in names
        for quantity in QUANTITIES
        for size in (0, 8, 100_000)
    }
    one_way = table[table["quantity"] == "one_way"]
    assert (one_way["seconds"] > 0).all()


@TWO_CPUS
def test_a_run_that_takes_too_long_is_ended_and_says_what_to_take_less_of():
    with pytest.raises(MpilabError, match="not finished after 0.05 s; use fewer sizes"):
        measure(limit=0.05)


def test_the_places_of_a_pair_are_handed_to_mpirun_in_order():
    machine = read_machine()
    first = min(machine.cpus)
    last = max(machine.cpus)
    options = pair_options(machine, (last, first))
    assert options[:2] == [
        "--map-by",
        f"pe-list={machine.place(last)},{machine.place(first)}:ordered:hwtcpus",
    ]
    assert options[2:] == ["--bind-to", "hwthread"]


def test_ranks_of_two_hosts_are_spread_by_node_and_not_bound():
    options = other_host_options("hosts.txt")
    assert options == ["--hostfile", "hosts.txt", "--map-by", "node", "--bind-to", "none"]


def test_lines_of_the_program_become_rows_in_seconds():
    said = "at 0 vm 0\none_way 8 0 250.5\ngap 8 1 -3.0\n"
    assert parse(said) == [("one_way", 8, 0, pytest.approx(2.505e-7)), ("gap", 8, 1, -3e-9)]


def test_ranks_that_ran_elsewhere_are_not_measured_under_that_name():
    _check_places("at 0 vm 2\nat 1 vm 5\n", "shared L3", (2, 5))
    with pytest.raises(SetupError, match=r"on CPUs 2 and 5.*\[2\] and \[6\]"):
        _check_places("at 0 vm 2\nat 1 vm 6\n", "shared L3", (2, 5))
    with pytest.raises(SetupError, match=r"\[0, 1\]"):
        _check_places("at 0 vm 0 1\nat 1 vm 0 1\n", "shared L3", (0, 1))
    with pytest.raises(MpilabError, match="did not report its place"):
        _check_places("", "shared L3", (0, 1))


def test_two_ranks_on_one_host_are_not_another_host():
    _check_places("at 0 n1 0\nat 1 n2 0\n", "other host", None)
    with pytest.raises(SetupError, match="both ranks ran on n1"):
        _check_places("at 0 n1 0\nat 1 n1 1\n", "other host", None)


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"sizes": ()}, "sizes"),
        ({"sizes": (1, -1)}, "-1"),
        ({"sizes": (8, 8)}, "twice"),
        ({"sizes": (1 << 31,)}, "2147483648"),
        ({"repetitions": 0}, "repetitions=0"),
        ({"distances": ["next door"]}, "'next door'"),
        ({"distances": ["other host"]}, "needs a hostfile"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, word):
    with pytest.raises(InputError, match=word):
        measure(**arguments)
