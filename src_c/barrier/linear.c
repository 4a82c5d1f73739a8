/* Linear barrier.
 *
 * Every rank reports to rank 0. When all have reported, rank 0 releases the others.
 *
 *   round 1                     round 2
 *   1 -> 0   2 -> 0   3 -> 0    0 -> 1   0 -> 2   0 -> 3          P = 4
 *
 * Rounds:   2 if P > 1 else 0
 * Messages: 2 * (P - 1)
 * Bytes:    0
 * Cost: 2α, and 2(P-1) messages that rank 0 must handle one by one: for few ranks.
 * Source: Open MPI 5, coll/base, "linear".
 */
#include "mpilab.h"
#include <stdlib.h>

enum { ROOT = 0 };

static int at_root(int size, MPI_Comm comm)
{
    MPI_Request *requests = malloc((size_t)size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    int err = MPI_SUCCESS;
    for (int rank = 1; rank < size && err == MPI_SUCCESS; rank++)
        err = MPI_Irecv(NULL, 0, MPI_BYTE, rank, TAG, comm, &requests[rank - 1]);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE);
    for (int rank = 1; rank < size && err == MPI_SUCCESS; rank++)
        err = MPI_Isend(NULL, 0, MPI_BYTE, rank, TAG, comm, &requests[rank - 1]);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}

MPILAB_BARRIER(linear)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank == ROOT)
        return at_root(size, comm);

    int err = MPI_Send(NULL, 0, MPI_BYTE, ROOT, TAG, comm);
    if (err == MPI_SUCCESS)
        err = MPI_Recv(NULL, 0, MPI_BYTE, ROOT, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
