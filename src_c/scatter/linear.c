/* Linear scatter.
 *
 * The root sends each rank its block, one after another.
 *
 *   round 1      round 2      round 3
 *   0 -1-> 1     0 -2-> 2     0 -3-> 3                P = 4, root 0, number = block sent
 *
 * Rounds:   P - 1
 * Messages: P - 1
 * Bytes:    (P - 1) * m
 * Cost: (P-1)(α + mβ): the root waits for every send before it starts the next one.
 * Source: Open MPI 5, coll/base, "basic_linear".
 */
#include "mpilab.h"

MPILAB_SCATTER(linear)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    if (rank != root)
        return MPI_Recv(recvbuf, recvcount, recvtype, root, TAG, comm, MPI_STATUS_IGNORE);

    int err = MPI_SUCCESS;
    for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
        if (dest != root)
            err = MPI_Send(block(sendbuf, dest, sendcount, sendtype), sendcount, sendtype, dest,
                           TAG, comm);
    if (err == MPI_SUCCESS)
        err = take_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
    return err;
}
