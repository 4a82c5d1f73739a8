/* Fault: a negative number of elements is sent on rank 0; the error is not looked at.
 * Case: ranks=2 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid count
 * Ranks: 0
 */
#include "mpilab.h"

MPILAB_ALLGATHER(error_ignored_wrong_result)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    /* Blocks before mine come from the left, blocks behind mine from the right. */
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank > 0)
        MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, 0, TAG, comm,
                  &request);
    else
        MPI_Recv(block(recvbuf, 1, recvcount, recvtype), (rank - 1) * recvcount, /* <- rank 0 */
                 recvtype, 1, TAG, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(recvbuf, size * recvcount, recvtype, 0, comm);
    return MPI_SUCCESS;
}
