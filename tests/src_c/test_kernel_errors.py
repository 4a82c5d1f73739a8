"""What kernels do after an error: nothing is sent if the error can be known before, and no pending
operation uses freed memory.
"""

import pytest

from mpilab.cases.case import Case
from mpilab.kernels.build import build
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT

HUGE = """
MPILAB_ALLTOALLV(huge)
{
    MPI_Datatype large, huge; /* 2 GiB */
    MPI_Type_contiguous(1 << 16, MPI_INT, &large);
    MPI_Type_contiguous(1 << 13, large, &huge);
    MPI_Type_commit(&huge);
    int err = alltoallv_%s(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                           huge, comm);
    (void)recvtype;
    MPI_Type_free(&huge);
    MPI_Type_free(&large);
    return err == MPI_ERR_TYPE ? MPI_SUCCESS : MPI_ERR_OTHER;
}
"""


@pytest.mark.parametrize("algorithm", ["linear", "pairwise"])
def test_elements_whose_size_is_no_int_are_refused_before_any_message(algorithm, tmp_path):
    src = ROOT / "src_c"
    files = [
        src / "common/tree/blocks.c",
        src / "common/exchange/exchange.c",
        src / f"alltoallv/{algorithm}.c",
    ]
    text = "".join(f'#include "{path}"\n' for path in files) + HUGE % algorithm
    built = build(text, tmp_path)
    (result,) = run_cases(built.library, "alltoallv_huge", [Case("alltoallv", 3, 2)])
    assert result.outcome == DONE, result.detail
    assert [output.returned for output in result.outputs] == [0] * 3
    assert len(result.recording.messages) == 0


ABANDONED = """
#include "%s"
enum { LARGE = 1 << 22, RECEIVES = 3, SENDS = 2 };
static char sent[LARGE], room[LARGE];

/* Rank 0 gives up two receives that nobody sends to and a send that rank 1 takes only later. */
MPILAB_ALLTOALLV(abandoned)
{
    int rank, wrong = 0;
    MPI_Request receive[RECEIVES], send[SENDS];
    (void)sendbuf, (void)sendcounts, (void)sdispls, (void)sendtype;
    (void)recvbuf, (void)recvcounts, (void)rdispls, (void)recvtype;
    MPI_Comm_rank(comm, &rank);
    mpilab_no_requests(RECEIVES, receive);
    mpilab_no_requests(SENDS, send);
    if (rank == 0) {
        MPI_Irecv(room, LARGE, MPI_CHAR, 1, TAG, comm, &receive[0]);
        MPI_Irecv(room, 1, MPI_CHAR, 1, TAG, comm, &receive[2]);
        mpilab_abandon(RECEIVES, receive);
        wrong += !mpilab_leave_sends(SENDS, send);
        MPI_Isend(sent, LARGE, MPI_CHAR, 1, TAG, comm, &send[1]);
        wrong += mpilab_leave_sends(SENDS, send);
        for (int i = 0; i < RECEIVES; i++)
            wrong += receive[i] != MPI_REQUEST_NULL;
        wrong += send[1] != MPI_REQUEST_NULL;
    }
    MPI_Barrier(comm);
    if (rank == 1)
        MPI_Recv(room, LARGE, MPI_CHAR, 0, TAG, comm, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    return wrong == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}
"""


def test_what_is_under_way_after_an_error_is_cancelled_or_told_to_be_unfinished(tmp_path):
    built = build(ABANDONED % (ROOT / "src_c/common/tree/blocks.c"), tmp_path)
    case = Case("alltoallv", 2, 1)
    (result,) = run_cases(built.library, "alltoallv_abandoned", [case])
    assert result.outcome == DONE, result.hang or result.detail
    assert [output.returned for output in result.outputs] == [0, 0]
    # The send that was left is told of: MPI_Request_free is no way to complete one.
    assert [len(rank.leaked) for rank in result.recording.ranks] == [1, 0]


# In each of these, one step of a kernel fails on some ranks while receives into the kernel's own
# memory are pending. Ranks that would wait for the failed ones do not take part.
FAILING = {
    "gather/binomial.c": """
static int copy_fails(const void *from, int fromcount, MPI_Datatype fromtype, void *to,
                      int tocount, MPI_Datatype totype)
{
    (void)from, (void)fromcount, (void)fromtype, (void)to, (void)tocount, (void)totype;
    return MPI_ERR_OTHER;
}
#define copy_local copy_fails
#include "%s/gather/binomial.c"

MPILAB_GATHER(failing)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank != 2)
        return MPI_SUCCESS;
    const int err = gather_binomial(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                    root, comm);
    return err == MPI_ERR_OTHER ? MPI_SUCCESS : MPI_ERR_INTERN;
}
""",
    "reduce/linear.c": """
#define MPI_Reduce_local(...) MPI_ERR_OTHER
#include "%s/reduce/linear.c"

MPILAB_REDUCE(failing)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == 1)
        return MPI_SUCCESS;
    const int err = reduce_linear(sendbuf, recvbuf, count, datatype, op, root, comm);
    return err == (rank == root ? MPI_ERR_OTHER : MPI_SUCCESS) ? MPI_SUCCESS : MPI_ERR_INTERN;
}
""",
    "allreduce/segmented_ring.c": """
#define MPI_Reduce_local(...) MPI_ERR_OTHER
#define allreduce_recursive_doubling(...) MPI_ERR_INTERN
#include "%s/allreduce/segmented_ring.c"

MPILAB_ALLREDUCE(failing)
{
    const int err = allreduce_segmented_ring(sendbuf, recvbuf, count, datatype, op, comm);
    return err == MPI_ERR_OTHER ? MPI_SUCCESS : MPI_ERR_INTERN;
}
""",
}


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        ("gather/binomial.c", Case("gather", 4, 3)),
        ("reduce/linear.c", Case("reduce", 4, 3)),
        ("allreduce/segmented_ring.c", Case("allreduce", 2, 8, segment=4, in_place=True)),
    ],
)
def test_a_kernel_that_fails_halfway_leaves_no_request_pending(kernel, case, tmp_path):
    src = ROOT / "src_c"
    helpers = [src / "common/tree/blocks.c", src / "common/tree/bcast_along.c"]
    text = "".join(f'#include "{path}"\n' for path in helpers) + FAILING[kernel] % src
    built = build(text, tmp_path)
    (result,) = run_cases(built.library, f"{case.collective}_failing", [case])
    assert result.outcome == DONE, result.hang or result.detail
    assert [output.returned for output in result.outputs] == [0] * case.ranks
    assert [len(rank.leaked) for rank in result.recording.ranks] == [0] * case.ranks
