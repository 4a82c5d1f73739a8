/* Linear broadcast.
 *
 * The root sends the whole message to every other rank, and starts all sends at once.
 *
 *   round 1
 *   0 -> 1   0 -> 2   0 -> 3                          P = 4, root 0
 *
 * Rounds:   1 if P > 1 else 0
 * Messages: P - 1
 * Bytes:    (P - 1) * m
 * Cost: α + (P-1)mβ at the root's link, which all messages must pass: best for 2 or 3 ranks.
 * Source: Open MPI 5, coll/base, "basic_linear"; Nuriyev, Lastovetsky (2020), section 3.
 */
#include "mpilab.h"
#include <stdlib.h>

static int send_to_all(const void *buffer, int count, MPI_Datatype datatype, int root, int size,
                       MPI_Comm comm)
{
    MPI_Request *requests = malloc((size_t)size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    int started = 0, err = MPI_SUCCESS;
    for (int rank = 0; rank < size && err == MPI_SUCCESS; rank++)
        if (rank != root)
            err = MPI_Isend(buffer, count, datatype, rank, TAG, comm, &requests[started++]);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}

MPILAB_BCAST(linear)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    if (rank == root)
        return send_to_all(buffer, count, datatype, root, size, comm);
    return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
}
