/* Fault: the block that a rank has for itself is sent to all.
 * Collective: alltoallv
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: the block of another rank
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

MPILAB_ALLTOALLV(own_block_to_all)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int step = 0; step < size && err == MPI_SUCCESS; step++) {
        int dest = (rank + step) % size;
        int source = (rank - step + size) % size;
        err = MPI_Sendrecv(block(sendbuf, sdispls[rank], 1, sendtype), sendcounts[dest], sendtype,
                           dest, TAG, block(recvbuf, rdispls[source], 1, recvtype),
                           recvcounts[source], recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
