/* Fault: the result of all ranks comes back in one message, but there is room for one block.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: message truncated
 * Ranks: 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(truncated_waitall)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    if (rank == 0) {
        for (int i = 1; i < size && err == MPI_SUCCESS; i++)
            err = MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG,
                           comm, MPI_STATUS_IGNORE);
        for (int i = 1; i < size && err == MPI_SUCCESS; i++)
            err = MPI_Send(recvbuf, size * recvcount, recvtype, i, TAG, comm);
    } else {
        MPI_Request requests[2];
        MPI_Irecv(recvbuf, recvcount, recvtype, 0, TAG, comm, &requests[0]); /* <- ranks 1 2 */
        MPI_Isend(own, recvcount, recvtype, 0, TAG, comm, &requests[1]);
        err = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* <- ranks 1 2 */
    }
    return err;
}
