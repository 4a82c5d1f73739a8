"""What simulations must give under every version of SimGrid: the same messages and times, to the
nanosecond, and what Open MPI would have returned from each call.

Run it on two systems with two versions, and it proves them equal.
"""

from pathlib import Path

import pytest

from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.hosts.platforms import PlatformOrder
from mpilab.kernels import simgrid
from mpilab.kernels.build import build as build_for_open_mpi
from mpilab.kernels.simgrid import kernels
from mpilab.runners.mpirun import run_cases
from mpilab.runners.simgrid import seconds_of, simulate

EXCHANGES = Path(__file__).with_name("exchanges.c")
# Simulated ns of 8 ranks, messages and rounds of each kernel, by platform.
KNOWN = Path(__file__).with_name("known_times.txt")


def known():
    """{platform: [(kernel, count, ns, messages, rounds), …]} of known_times.txt."""
    found = {}
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            platform, kernel, *numbers = (word.strip() for word in line.split("|"))
            found.setdefault(platform, []).append((kernel, *map(int, numbers)))
    return found


@pytest.mark.parametrize(("platform", "rows"), known().items(), ids=list(known()))
def test_times_messages_and_rounds_are_the_same_under_every_simgrid(platform, rows):
    where = PlatformOrder.parse(platform)
    cases = [
        Case(kernel.partition("_")[0], 8, count, function=kernel) for kernel, count, *_ in rows
    ]
    results = simulate(
        kernels(), "", cases, where.platform, order=where.order.name, seed=where.order.seed
    )
    told = []
    for (kernel, count, *_), result in zip(rows, results, strict=True):
        assert result.outcome == "done", f"{kernel}: {result.outcome}: {result.detail}"
        assert not compare(result.case, result.outputs), kernel
        recording = result.recording
        told.append(
            (
                kernel,
                count,
                round(seconds_of(result) * 1e9),
                len(recording.messages),
                recording.rounds,
            )
        )
    assert told == rows


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory):
    """A function: the name of a kernel of exchanges.c to its Results, simulated and on Open MPI."""
    folder, source = tmp_path_factory.mktemp("exchanges"), EXCHANGES.read_text(encoding="utf-8")
    simulated = simgrid.build(source, folder, stem="simulated").library
    real = build_for_open_mpi(source, folder).library

    def run(function):
        case = Case("bcast", 3, 1, dump=False)
        results = *simulate(simulated, function, [case]), *run_cases(real, function, [case])
        assert [one.outcome for one in results] == ["done", "done"], results[0].detail
        return results

    return run


@pytest.fixture(scope="module")
def exchanged(both_ways):
    """The Results of all exchanges."""
    return both_ways("bcast_exchanges")


def test_an_exchange_says_and_leaves_what_it_does_on_open_mpi(exchanged):
    simulated, real = exchanged
    assert simulated.printed[0].count("\n") == 8
    for rank in range(3):
        assert simulated.printed[rank].splitlines() == real.printed[rank].splitlines()


def test_an_exchange_is_recorded_as_on_open_mpi(exchanged):
    simulated, real = (
        [
            [
                (
                    record["operation"],
                    record["peer"],
                    record["tag"],
                    record["bytes"],
                    record["error"],
                )
                for record in rank.records
            ]
            for rank in result.recording.ranks
        ]
        for result in exchanged
    )
    assert simulated == real


def test_requests_that_are_asked_for_until_all_are_done_leave_nothing_behind(both_ways):
    simulated, real = both_ways("bcast_asked_until_all_are_done")
    assert simulated.printed == real.printed
    assert simulated.printed[0].splitlines() == ["1 from 1 with tag 101", "2 from 2 with tag 102"]
    for result in (simulated, real):
        assert not any(len(rank.leaked) for rank in result.ranks)
        assert len(result.recording.messages) == 3


def test_elements_of_types_that_are_made_of_others_are_where_open_mpi_has_them(both_ways):
    simulated, real = both_ways("bcast_types_of_types")
    assert real.printed[0].count("\n") == 50
    for line, right in zip(
        simulated.printed[0].splitlines(), real.printed[0].splitlines(), strict=True
    ):
        assert line == right


def test_the_displacements_of_a_single_rank_are_bytes(both_ways):
    moved = " 0 0 0 2 0 0 0 0"
    for result in both_ways("bcast_alone"):
        assert [result.printed[rank] for rank in range(3)] == [f"{moved}{moved}\n"] * 3
