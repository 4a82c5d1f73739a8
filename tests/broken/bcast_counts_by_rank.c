/* Fault: the count of a segment depends on the rank.
 * Collective: bcast
 * Case: ranks=3 count=12
 * Diagnosis: mpi-error
 * Pattern: message truncated
 * Ranks: 2
 */
#include "mpilab.h"

MPILAB_BCAST(counts_by_rank)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int elements = count / (rank == size - 1 ? size : 1); /* it should be the same for all */
    int err = MPI_SUCCESS;
    if (rank == root) {
        for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
            if (dest != root)
                err = MPI_Send(buffer, elements, datatype, dest, TAG, comm);
    } else {
        err = MPI_Recv(buffer, elements, datatype, root, TAG, /* <- rank 2 */
                       comm, MPI_STATUS_IGNORE);
    }
    return err;
}
