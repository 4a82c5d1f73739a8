/* Fault: dissemination ends one round too early.
 * Collective: barrier
 * Case: ranks=4 count=0
 * Diagnosis: wrong-result
 * Pattern: left too early
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

MPILAB_BARRIER(too_few_rounds)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    for (int distance = 1; 2 * distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (rank + distance) % size;
        const int source = (rank - distance + size) % size;
        err = MPI_Sendrecv(NULL, 0, MPI_BYTE, dest, TAG, /* <- ranks 0 1 2 3 */
                           NULL, 0, MPI_BYTE, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
