/* Fault: no rank copies what it sends to itself.
 * Collective: alltoallv
 * Case: ranks=4 count=4 pattern=ragged
 * Diagnosis: wrong-result
 * Pattern: own block missing
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLTOALLV(own_block_missing)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        int dest = (rank + step) % size;
        int source = (rank - step + size) % size;
        err = MPI_Sendrecv(block(sendbuf, sdispls[dest], 1, sendtype), sendcounts[dest], sendtype,
                           dest, TAG, block(recvbuf, rdispls[source], 1, recvtype),
                           recvcounts[source], recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
