/* Fault: rank 0 hears of all, and returns without an answer.
 * Collective: barrier
 * Case: ranks=3 count=0
 * Diagnosis: deadlock
 * Pattern: a missing send
 * Ranks: 1 2
 */
#include "mpilab.h"

MPILAB_BARRIER(root_does_not_answer)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    if (rank != 0) {
        err = MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, comm);
        if (err == MPI_SUCCESS)
            err = MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE); /* <- ranks 1 2 */
        return err;
    }
    for (int source = 1; source < size && err == MPI_SUCCESS; source++)
        err = MPI_Recv(NULL, 0, MPI_BYTE, source, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
