/* Linear non-blocking scatter.
 *
 * The root starts to send each rank its block, and then waits for all these sends together.
 *
 *   round 1
 *   0 -1-> 1   0 -2-> 2   0 -3-> 3                    P = 4, root 0, number = block sent
 *
 * Rounds:   1 if P > 1 else 0
 * Messages: P - 1
 * Bytes:    (P - 1) * m
 * Cost: α + (P-1)mβ at the root's link, if start-ups overlap: a slow receiver does not delay the
 * others.
 * Source: Open MPI 5, coll/base, "linear_nb".
 */
#include "mpilab.h"
#include <stdlib.h>

static int at_root(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, int root, int size, MPI_Comm comm)
{
    MPI_Request *requests = malloc((size_t)size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    int started = 0, err = MPI_SUCCESS;
    for (int rank = 0; rank < size && err == MPI_SUCCESS; rank++)
        if (rank != root)
            err = MPI_Isend(block(sendbuf, rank, sendcount, sendtype), sendcount, sendtype, rank,
                            TAG, comm, &requests[started++]);
    if (err == MPI_SUCCESS)
        err = take_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}

MPILAB_SCATTER(linear_nb)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    if (rank != root)
        return MPI_Recv(recvbuf, recvcount, recvtype, root, TAG, comm, MPI_STATUS_IGNORE);
    return at_root(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, size, comm);
}
