/* Fault: MPI_Irecv is never waited for; the root begins when all others are ready.
 * Collective: bcast
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: a request never completed
 * Ranks: 2 3
 */
#include "mpilab.h"

MPILAB_BCAST(sent_on_without_wait)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int before = rank == root ? MPI_PROC_NULL : (rank - 1 + size) % size;
    const int after = (rank + 1) % size == root ? MPI_PROC_NULL : (rank + 1) % size;

    int err = MPI_SUCCESS;
    if (rank != root) {
        MPI_Request request;
        err = MPI_Irecv(buffer, count, datatype, before, TAG, comm, &request); /* <- ranks 1 2 3 */
        if (err == MPI_SUCCESS)
            err = MPI_Send(buffer, count, datatype, after, TAG, comm);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Barrier(comm);
    if (rank == root && err == MPI_SUCCESS)
        err = MPI_Send(buffer, count, datatype, after, TAG, comm);
    return err;
}
