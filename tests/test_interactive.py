"""The same cases and the same results on engines that are already there."""

import pytest
from c_kernels import build_kernels

from mpilab import interactive
from mpilab.build import KERNELS
from mpilab.cluster.engines import Cluster
from mpilab.errors import InputError
from mpilab.harness import Case, compare
from mpilab.result import CRASH, DEADLOCK, DONE, ERROR, SKIPPED, TIME_OUT
from mpilab.schedules.allgather import ALGORITHMS, schedule

BODIES = {
    "segfault": "if (rank == 1) *(volatile int *)8 = 1; MPI_Barrier(comm);",
    "deadlock": "MPI_Recv(recvbuf, 1, MPI_INT, (rank + 1) % size, 7, comm, MPI_STATUS_IGNORE);",
    "stray": "if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 1, TAG, comm);"
    "return MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);",
    "endless": "if (rank == 1) for (volatile int i = 0;; i++); MPI_Barrier(comm);",
}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(4, progress=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("interactive"), BODIES)


def run(cluster, library, name, *cases, **options):
    return interactive.run_cases(cluster, library, f"allgather_{name}", list(cases), **options)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_kernels_are_right_on_any_part_of_the_cluster(cluster, name):
    cases = [
        Case("allgather", ranks, 3, datatype, in_place, in_place)
        for ranks in (1, 2, 3, 4)
        for datatype, in_place in (("int", False), ("mixed", False), ("struct", True))
    ]
    for result in run(cluster, KERNELS, name, *cases):
        assert result.outcome == DONE, result.detail
        assert compare(result.case, result.outputs) == []
        planned = schedule(name, result.case.ranks)
        assert len(result.recording.messages) == len(planned.transfers())
        assert result.recording.rounds == len(planned.rounds)


def test_repetitions_are_timed_without_a_recording(cluster):
    case = Case("allgather", 4, 64, record=False, dump=False, warmup=1, repetitions=10)
    (result,) = run(cluster, KERNELS, "ring", case)
    assert result.recording is None
    assert [output.spans_ns.shape for output in result.outputs] == [(10, 2)] * 4


def test_after_a_deadlock_the_cluster_is_usable_again(cluster, library):
    hung, right = Case("allgather", 4, 1), Case("allgather", 4, 2)
    (result,) = run(cluster, library, "deadlock", hung)
    assert result.outcome == DEADLOCK
    assert result.hang.cycle() == (0, 1, 2, 3)
    assert run(cluster, KERNELS, "ring", right)[0].outcome == DONE


def test_a_crash_names_rank_and_signal_in_the_kernels_order_and_later_cases_are_skipped(
    cluster, library
):
    cases = [Case("allgather", 4, 1, reversed=True), Case("allgather", 4, 2)]
    first, second = run(cluster, library, "segfault", *cases, groups=[("a",), ("a",)])
    assert first.outcome == CRASH
    assert first.crashed == (1, "SIGSEGV")
    assert second.outcome == SKIPPED
    assert run(cluster, KERNELS, "ring", cases[1])[0].outcome == DONE


@pytest.mark.parametrize("record", [True, False])
def test_a_rank_that_computes_for_ever_is_a_time_out(cluster, library, record):
    case = Case("allgather", 4, 1, record=record)
    (result,) = run(cluster, library, "endless", case, limit=2.0)
    assert result.outcome == TIME_OUT
    if record:
        assert "rank 1 was computing" in result.hang.describe()


def test_a_kernel_that_is_not_there_is_an_error_and_the_cluster_goes_on(cluster):
    case = Case("allgather", 4, 1)
    (result,) = run(cluster, KERNELS, "missing", case)
    assert result.outcome == ERROR
    assert "no function allgather_missing" in result.detail
    assert run(cluster, KERNELS, "ring", case)[0].outcome == DONE


def test_more_ranks_than_there_are_is_refused_before_anything_is_run(cluster):
    with pytest.raises(InputError, match=r"ranks=5: the cluster has 4; .*Cluster\(5\).start\(\)"):
        run(cluster, KERNELS, "ring", Case("allgather", 4, 1), Case("allgather", 5, 1))


def test_a_message_that_nobody_received_does_not_reach_the_next_run(cluster, library):
    """Its communicator is freed, and the next one may get the same number."""
    for _ in range(3):
        stray, right = run(cluster, library, "stray", Case("allgather", 4, 1))[0], None
        assert stray.outcome == DONE
        (right,) = run(cluster, KERNELS, "ring", Case("allgather", 4, 1))
        assert compare(right.case, right.outputs) == []
