/* Fault: each rank sends to the next one before it receives.
 * Collective: bcast
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: a message forwarded too early
 * Ranks: 2 3
 */
#include "mpilab.h"

MPILAB_BCAST(sent_on_before_received)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int before = rank == root ? MPI_PROC_NULL : (rank - 1 + size) % size;
    const int after = (rank + 1) % size == root ? MPI_PROC_NULL : (rank + 1) % size;

    int err = MPI_Send(buffer, count, datatype, after, TAG, comm); /* <- ranks 1 2 */
    if (err == MPI_SUCCESS)
        err = MPI_Recv(buffer, count, datatype, before, TAG, comm, MPI_STATUS_IGNORE);

    /* The last rank tells the root that the message is through. */
    if (err == MPI_SUCCESS && size > 1 && after == MPI_PROC_NULL)
        err = MPI_Send(NULL, 0, MPI_BYTE, root, TAG + 1, comm);
    if (err == MPI_SUCCESS && size > 1 && before == MPI_PROC_NULL)
        err =
            MPI_Recv(NULL, 0, MPI_BYTE, (root - 1 + size) % size, TAG + 1, comm, MPI_STATUS_IGNORE);
    return err;
}
