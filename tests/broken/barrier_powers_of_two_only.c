/* Fault: recursive doubling leaves a step out where there is no partner.
 * Collective: barrier
 * Case: ranks=3 count=0
 * Diagnosis: wrong-result
 * Pattern: left too early
 * Ranks: 1
 */
#include "mpilab.h"

MPILAB_BARRIER(powers_of_two_only)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int partner = rank ^ distance;
        if (partner < size)
            err = MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, TAG, /* <- rank 1 */
                               NULL, 0, MPI_BYTE, partner, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
