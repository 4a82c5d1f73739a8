"""A kernel that is called again gets new data, and every call must be correct."""

from dataclasses import replace

import numpy as np
import pytest
from c_kernels import PREAMBLE, source_of

from mpilab.cases.case import Case
from mpilab.cases.output import wrong_calls
from mpilab.errors import InputError, Ungradable
from mpilab.judging import agreement, judge
from mpilab.judging.rubric import Exercise, Item
from mpilab.judging.verdict import FAIL, PASS, UNGRADABLE
from mpilab.kernels import build, simgrid
from mpilab.kernels.simgrid import kernels
from mpilab.runners.mpirun import run_cases
from mpilab.runners.simgrid import simulate

EXCHANGE = """
static int linear(const void *from, void *recvbuf, int bytes, int rank, int size, MPI_Comm comm)
{
    for (int round = 0; round < size; round++) {
        const int to = (rank + round) % size, source = (rank + size - round) % size;
        MPI_Sendrecv(from, bytes, MPI_BYTE, to, 0, (char *)recvbuf + source * bytes, bytes,
                     MPI_BYTE, source, 0, comm, MPI_STATUS_IGNORE);
    }
    return MPI_SUCCESS;
}
#define BYTES (recvcount * (int)sizeof(int))
#define WORK  linear(sendbuf, recvbuf, BYTES, rank, size, comm)
"""
BODIES = {
    "right": "WORK;",
    "once": "static int calls; if (calls++ == 0) WORK;",
    # What the first call left, used in the second one.
    "cached": """static char kept[1 << 12]; static int calls;
        if (calls++ == 0) { WORK; memcpy(kept, recvbuf, BYTES * size); }
        else memcpy(recvbuf, kept, BYTES * size);""",
    "fails": "static int calls; WORK; if (calls++ == 1) return MPI_ERR_OTHER;",
    "leaves": "static int calls; WORK; if (calls++ == 1 && rank == 2) exit(3);",
    "guards": "static int calls; WORK; if (calls++ == 2) ((char *)recvbuf)[-1] ^= 1;",
    "sender": "static int calls; WORK; if (calls++ == 2) *(char *)sendbuf ^= 1;",
    # An address is enough in the simulation, whose ranks share memory.
    "addresses": """static int calls; if (calls++ == 0) WORK; else {
        const void *all[64];
        linear(&sendbuf, all, sizeof sendbuf, rank, size, comm);
        for (int i = 0; i < size; i++)
            memcpy((char *)recvbuf + i * BYTES, all[i], BYTES);
        MPI_Barrier(comm);
    }""",
}
CASE = Case("allgather", 3, 20, platform="flat-3x1")
TOLD = {
    "once": "called again, it left a wrong result on ranks 0 to 2",
    "cached": "the second call left a wrong result on ranks 0 to 2",
    "fails": "called a second time, it returned an error on ranks 0 to 2",
    "leaves": "called a second time, it did not finish (crash)",
    "guards": "the second call left a wrong result on ranks 0 to 2",
    "sender": "the second call left a wrong result on ranks 0 to 2",
}


@pytest.fixture(scope="module")
def source():
    return source_of(BODIES, PREAMBLE + EXCHANGE)


@pytest.fixture(scope="module")
def library(source, tmp_path_factory):
    return simgrid.build(source, tmp_path_factory.mktemp("later")).library


@pytest.fixture
def verdict(library):
    """The verdict on an item that asks for speed, from simulations alone."""

    def of(name, change=lambda result: result):
        item = Item("fast", "Fast", 1, (), simulated=(CASE,), than="allgather_ring", faster=0.01)
        exercise = Exercise("x", "X", "kernel", (item,), "allgather", f"allgather_{name}")
        cases, groups = agreement.to_simulate(exercise)
        results = simulate(library, f"allgather_{name}", cases, groups=groups)
        found = agreement.Witness([change(one) if one.case.warmup else one for one in results])
        return agreement.judge_exercise(exercise, [], found)[0].items[0]

    return of


def test_a_right_kernel_is_right_in_every_call(verdict):
    assert verdict("right").outcome == PASS


@pytest.mark.parametrize("name", TOLD)
def test_a_later_call_that_is_wrong_is_told_by_its_number(name, verdict):
    said = verdict(name)
    assert said.outcome == FAIL
    assert TOLD[name] in said.reason


def test_a_later_call_needs_messages_for_its_own_data(verdict):
    said = verdict("addresses")
    assert said.outcome == UNGRADABLE
    assert "ended with 160 bytes from other ranks, but received 16 in messages" in said.reason


def with_time(result, span):
    spans = np.array([span], np.int64)
    return replace(result, outputs=[replace(each, spans_ns=spans) for each in result.outputs])


@pytest.mark.parametrize("span", [(0, 0), (5, 5), (9, 2)])
def test_no_call_of_several_ranks_takes_no_time(span, verdict):
    said = verdict("right", lambda result: with_time(result, span))
    assert said.outcome == UNGRADABLE
    assert "which is impossible" in said.reason


def test_a_call_without_a_time_cannot_be_graded(verdict):
    def without(result):
        nothing = np.zeros((0, 2), np.int64)
        return replace(result, outputs=[replace(each, spans_ns=nothing) for each in result.outputs])

    said = verdict("right", without)
    assert (said.outcome, "the times of its calls are missing" in said.reason) == (UNGRADABLE, True)


def test_a_run_that_was_not_made_proves_nothing(library):
    (result,) = simulate(library, "allgather_right", [agreement.timed(CASE)])
    with pytest.raises(Ungradable, match="no room"):
        judge.wrong_later(replace(result, outcome="error", detail="no room"))


@pytest.mark.parametrize(
    ("kernel", "more"),
    [
        ("allgather_ring", {"datatype": "vector"}),
        ("allgather_bruck", {"in_place": True}),
        ("allreduce_ring", {"in_place": True}),
        ("alltoallv_pairwise", {"pattern": "ragged", "in_place": True, "datatype": "struct"}),
        ("barrier_tree", {"count": 0}),
        ("bcast_binomial", {"root": 2, "datatype": "byte", "count": 13}),
        ("gather_binomial", {"root": 2, "reversed": True}),
        ("reduce_in_order_binary", {"op": "compose", "root": 1}),
        ("scatter_binomial", {"root": 1, "datatype": "mixed"}),
    ],
)
def test_the_harness_and_python_agree_on_the_data_of_every_call(kernel, more):
    about = {"count": 7, **more, "dump": False, "fresh": True, "warmup": 1, "repetitions": 2}
    case = Case(kernel.partition("_")[0], 5, **about)
    results = [
        *simulate(kernels(), kernel, [case]),
        *run_cases(build.need(build.KERNELS), kernel, [case]),
    ]
    for result in results:
        assert [len(output.checksums) for output in result.outputs] == [3] * 5
        assert wrong_calls(case, result.outputs) == {}
        if kernel != "barrier_tree":  # a barrier leaves nothing
            other = replace(case, seed=2)
            assert set(wrong_calls(other, result.outputs)) == {0, 1, 2}


def test_open_mpi_runs_a_kernel_on_fresh_data_as_well(source, tmp_path):
    built = build.build(source, tmp_path).library
    case = replace(CASE, platform="", dump=False, fresh=True, repetitions=3)
    (right,) = run_cases(built, "allgather_right", [case])
    (once,) = run_cases(built, "allgather_cached", [case])
    assert wrong_calls(case, right.outputs) == {}
    assert wrong_calls(case, once.outputs) == {1: (0, 1, 2), 2: (0, 1, 2)}


@pytest.mark.parametrize(
    "case",
    [
        {"collective": "bcast", "count": 1},
        {"collective": "read", "count": 1, "datatype": "double", "matrix": "4x4", "dump": False},
    ],
)
def test_fresh_data_are_refused_where_nothing_would_compare_them(case):
    with pytest.raises(InputError, match="fresh"):
        Case(ranks=2, fresh=True, **case)
