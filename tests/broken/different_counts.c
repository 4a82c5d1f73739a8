/* Fault: rank 0 broadcasts one block, all others expect the blocks of all ranks.
 * Case: ranks=4 count=100000
 * Diagnosis: deadlock
 * Pattern: different counts
 * Ranks: any
 */
#include "mpilab.h"

int allgather_different_counts(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
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
        return MPI_Bcast(recvbuf, recvcount, recvtype, 0, comm); /* <- rank 0 */
    }
    MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, 0, TAG, comm);
    return MPI_Bcast(recvbuf, size * recvcount, recvtype, 0, comm); /* <- ranks 1 2 3 */
}
