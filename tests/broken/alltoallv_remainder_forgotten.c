/* Fault: blocks go in whole segments of three elements, and what is left over is not sent.
 * Collective: alltoallv
 * Case: ranks=3 count=10
 * Diagnosis: wrong-result
 * Pattern: part of the message missing
 * Ranks: 0 1 2
 */
#include "mpilab.h"

enum { SEGMENT = 3 };

MPILAB_ALLTOALLV(remainder_forgotten)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int step = 0; step < size && err == MPI_SUCCESS; step++) {
        int dest = (rank + step) % size;
        int source = (rank - step + size) % size;
        for (int i = 0; i < sendcounts[dest] / SEGMENT && err == MPI_SUCCESS; i++)
            err = MPI_Sendrecv(block(sendbuf, sdispls[dest] + i * SEGMENT, 1, sendtype), SEGMENT,
                               sendtype, dest, TAG,
                               block(recvbuf, rdispls[source] + i * SEGMENT, 1, recvtype), SEGMENT,
                               recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
