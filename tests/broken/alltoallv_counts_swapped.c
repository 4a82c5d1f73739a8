/* Fault: sendcounts and recvcounts are swapped, on both sides: no call fails.
 * Collective: alltoallv
 * Case: ranks=3 count=4 pattern=ragged
 * Diagnosis: wrong-result
 * Pattern: part of the message missing
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLTOALLV(counts_swapped)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int step = 0; step < size && err == MPI_SUCCESS; step++) {
        int dest = (rank + step) % size;
        int source = (rank - step + size) % size;
        err = MPI_Sendrecv(block(sendbuf, sdispls[dest], 1, sendtype), recvcounts[dest], sendtype,
                           dest, TAG, block(recvbuf, rdispls[source], 1, recvtype),
                           sendcounts[source], recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
