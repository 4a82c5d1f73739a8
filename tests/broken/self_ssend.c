/* Fault: rank 0 hands out the result with MPI_Ssend, and begins with itself.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: a message to oneself
 * Ranks: 0
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_ALLGATHER(self_ssend)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);
    const int all = size * recvcount;

    if (rank == 0) {
        for (int i = 1; i < size && err == MPI_SUCCESS; i++)
            err = MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG,
                           comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < size && err == MPI_SUCCESS; i++)
            err = MPI_Ssend(recvbuf, all, recvtype, i, TAG, comm); /* <- rank 0 */
    } else {
        err = MPI_Send(own, recvcount, recvtype, 0, TAG, comm);
        err = MPI_Recv(recvbuf, all, recvtype, 0, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
