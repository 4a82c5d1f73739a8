"""A kernel under a limit on memory: what it cannot have is explained; what needs less passes."""

import pytest

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.errors import InputError
from mpilab.grading.release import release
from mpilab.hosts.orders import places_of
from mpilab.kernels.build import KERNELS, build, need
from mpilab.notebook.session import KernelRun
from mpilab.runners import engines, mpirun
from mpilab.runners.simgrid import simulate
from mpilab.util.kit import ROOT

COUNT = 32 * 1024  # ints for each pair of ranks
LIMIT = 4 << 20  # half of what the root of the naive kernel collects


@pytest.fixture(scope="module")
def naive(tmp_path_factory):
    """The kernel of lab 04 in which one rank collects everything: its text and its library."""
    cells = (cell.source for cell in release(ROOT / "labs/source/04-topology.py").cells)
    text = next(c for c in cells if c.startswith("%%kernel alltoallv_at_root")).partition("\n")[2]
    return text, build(text, tmp_path_factory.mktemp("naive")).library


def case(**more):
    return Case("alltoallv", 8, COUNT, places=places_of("two-groups rr"), **more)


def run(library, function, *cases, **options):
    return mpirun.run_cases(library, function, cases, **options)


def line_of(text, part):
    return next(n for n, line in enumerate(text.split("\n"), 1) if part in line)


def test_the_naive_alltoallv_is_told_which_rank_asked_for_how_much_in_which_line(naive):
    text, library = naive
    enough, too_little = run(library, "alltoallv_at_root", case(), case(memory=LIMIT))
    assert diagnose(enough) is None
    found = diagnose(too_little)
    line = line_of(text, "malloc(")
    everything = 64 * COUNT * 4
    assert found.headline == (
        f"rank 0 asked for {everything} bytes (8 MiB) in line {line}, "
        "but may have 4 MiB beyond its buffers in this run"
    )
    assert found.pattern == "out of memory"
    assert found.places[0].line == line
    assert found.places[0].label == "rank 0 asks for 8 MiB here"
    assert any(note.startswith("Then deadlock: ") for note in found.notes)
    assert "memory limit 4194304 bytes" in too_little.case.describe()
    assert "wrong" not in " ".join(found.notes)


def test_kernels_that_need_less_work_under_the_same_limit():
    library = need(KERNELS)
    cases = [
        case(memory=LIMIT, function="alltoallv_pairwise"),
        case(memory=LIMIT, budget=1 << 20, function="alltoallv_leaders"),
    ]
    for result in run(library, "", *cases):
        assert KernelRun(result.function, result).right, result


UNTESTED = """
#include "mpilab.h"
#include <stdlib.h>
int bcast_untested(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == root) {
        char *volatile much = malloc(64 << 20);
        *(volatile char *)much = 1; /* here */
        free(much);
    }
    (void)buffer, (void)count, (void)datatype;
    return MPI_SUCCESS;
}
int bcast_falls_back(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    char *volatile much = malloc(64 << 20);
    free(much);
    return MPI_Bcast(buffer, count, datatype, root, comm);
}
"""


def test_a_crash_after_an_untested_malloc_and_a_right_result_without_it_are_told_apart(tmp_path):
    library = build(UNTESTED, tmp_path).library
    cases = [
        Case("bcast", 2, 4, memory=LIMIT, function=f"bcast_{n}") for n in ("falls_back", "untested")
    ]
    right, crashed = run(library, "", *cases)
    assert diagnose(right) is None
    assert right.ranks[0].refused[0] == 64 << 20
    found = diagnose(crashed)
    assert found.kind == "crash"
    assert "rank 0 asked for 67108864 bytes (64 MiB)" in found.headline
    lines = [line_of(UNTESTED, "malloc(64"), line_of(UNTESTED, "/* here */")]
    assert [place.line for place in found.places] == lines


def test_the_limit_ends_with_the_call(tmp_path):
    library = build(UNTESTED, tmp_path).library
    limited, free = (
        Case("bcast", 2, 4, memory=LIMIT, function="bcast_falls_back"),
        Case("bcast", 2, 4, function="bcast_falls_back"),
    )
    assert [r.ranks[0].refused is None for r in run(library, "", limited, free)] == [False, True]


def test_ranks_that_outlive_a_run_get_no_limit():
    limited = Case("bcast", 2, 4, memory=LIMIT)
    with pytest.raises(InputError, match="memory=4194304: only in a job of its own"):
        engines.run_cases(None, need(KERNELS), "bcast_binomial", [limited])
    with pytest.raises(InputError, match="simulated ranks share one process"):
        simulate(need(KERNELS), "bcast_binomial", [limited])
