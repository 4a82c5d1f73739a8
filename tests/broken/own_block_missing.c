/* Fault: all blocks are exchanged, but the own one is never copied to the receive buffer.
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: own block missing
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_own_block_missing(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size;
        const int source = (rank - step + size) % size;
        err = MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, TAG,
                           block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source,
                           TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
