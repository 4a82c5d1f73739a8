/* Fault: rank 0 returns when it has all blocks, and so never enters the MPI_Bcast.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: a collective that a rank never enters
 * Ranks: 0
 */
#include "mpilab.h"

int allgather_early_return_root(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    if (rank == 0) {
        for (int i = 1; i < size; i++)
            MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                     MPI_STATUS_IGNORE);
        return MPI_SUCCESS;
    }
    MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, 0, TAG, comm);
    return MPI_Bcast(recvbuf, size * recvcount, recvtype, 0, comm); /* <- ranks 1 2 3 */
}
