/* Fault: the blocks are received from any rank, and stored by the index of the loop.
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: blocks in the wrong place
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

int allgather_wildcard_by_index(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    if (rank == 0) {
        for (int i = 1; i < size && err == MPI_SUCCESS; i++)
            err = MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, /* <- rank 0 */
                           recvtype, MPI_ANY_SOURCE, TAG, comm, MPI_STATUS_IGNORE);
    } else {
        /* The last rank sends first, and tells the one before it. */
        if (rank < size - 1)
            MPI_Recv(&rank, 0, MPI_INT, rank + 1, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Ssend(sendbuf, sendcount, sendtype, 0, TAG, comm);
        if (rank > 1)
            MPI_Send(&rank, 0, MPI_INT, rank - 1, TAG, comm);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Bcast(recvbuf, size * recvcount, recvtype, 0, comm);
    return err;
}
