/* Fault: rank 0 sends, whatever the root is.
 * Collective: bcast
 * Case: ranks=4 count=4 root=2
 * Diagnosis: wrong-result
 * Pattern: wrong root
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

MPILAB_BCAST(root_taken_as_zero)
{
    (void)root;
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    if (rank == 0) {
        for (int dest = 1; dest < size && err == MPI_SUCCESS; dest++)
            err = MPI_Send(buffer, count, datatype, dest, TAG, comm); /* <- rank 0 */
    } else {
        err = MPI_Recv(buffer, count, datatype, 0, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
