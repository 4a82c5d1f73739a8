/* Fault: the ring does not end before the root: a scratch value comes back to it.
 * Collective: bcast
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: the root's message changed
 * Ranks: 0
 */
#include "mpilab.h"
#include <string.h>

MPILAB_BCAST(received_at_the_root)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int before = (rank - 1 + size) % size, after = (rank + 1) % size;

    int err = MPI_SUCCESS;
    if (rank != root)
        err = MPI_Recv(buffer, count, datatype, before, TAG, comm, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS && after != root)
        err = MPI_Send(buffer, count, datatype, after, TAG, comm);
    if (err == MPI_SUCCESS && after == root)
        err = MPI_Send(&rank, 1, MPI_INT, root, TAG, comm);
    if (err == MPI_SUCCESS && rank == root)
        err = MPI_Recv(buffer, 1, MPI_INT, before, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
