/* Fault: all report to rank 0, and nobody is told.
 * Collective: barrier
 * Case: ranks=4 count=0
 * Diagnosis: wrong-result
 * Pattern: left too early
 * Ranks: 1 2 3
 */
#include "mpilab.h"

MPILAB_BARRIER(reports_only)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    if (rank != 0)
        return MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, comm); /* <- ranks 1 2 3 */
    for (int source = 1; source < size && err == MPI_SUCCESS; source++)
        err = MPI_Recv(NULL, 0, MPI_BYTE, source, TAG, comm, MPI_STATUS_IGNORE);

    /* Rank 0 knows now that all have come. */
    return err;
}
