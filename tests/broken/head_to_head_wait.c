/* Fault: each rank waits for its MPI_Irecv at once, before it sends: no better than MPI_Recv.
 * Case: ranks=2 count=4
 * Diagnosis: deadlock
 * Pattern: head-to-head receives
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(head_to_head_wait)
{
    int rank, size, err;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int other = 0; other < size && err == MPI_SUCCESS; other++) {
        MPI_Request request;
        if (other == rank)
            continue;
        MPI_Irecv(block(recvbuf, other, recvcount, recvtype), recvcount, recvtype, other, TAG,
                  comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* <- ranks 0 1 */
        err = MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, other, TAG,
                       comm);
    }
    return err;
}
