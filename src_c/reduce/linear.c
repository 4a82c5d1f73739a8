/* Linear reduce.
 *
 * Every rank sends its data to the root, which receives it from the last rank down to the first:
 * this keeps the order of ranks for any operation.
 *
 *   round 1
 *   3 -> 0   2 -> 0   1 -> 0                          P = 4, root 0
 *
 * Rounds:   1 if P > 1 else 0
 * Messages: P - 1
 * Bytes:    (P - 1) * m
 * Cost: α + (P-1)(mβ + mγ) with γ per byte reduced: the root does all the work; for 2 or 3 ranks.
 * Source: Open MPI 5, coll/base, "linear".
 */
#include "../common/tree/blocks.h"
#include <stdlib.h>

/* MPI_Reduce_local(a, b) puts a op b into b: so the result grows to the left, from the last rank's
 * data, which goes directly to `recvbuf`. Data arrives alternately in two places, the next rank's
 * while this one's is reduced. */
static int at_root(const void *own, void *recvbuf, void *room, int count, MPI_Datatype datatype,
                   MPI_Op op, int root, int size, MPI_Comm comm)
{
    MPI_Request incoming[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int err = MPI_SUCCESS;
    for (int rank = size; rank >= 0 && err == MPI_SUCCESS; rank--) {
        const int next = rank - 1;
        if (next >= 0 && next != root)
            err = MPI_Irecv(next == size - 1 ? recvbuf : block(room, next % 2, count, datatype),
                            count, datatype, next, TAG, comm, &incoming[next % 2]);
        if (rank == size)
            continue;
        if (err == MPI_SUCCESS && rank != root)
            err = MPI_Wait(&incoming[rank % 2], MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS && rank < size - 1)
            err = MPI_Reduce_local(rank == root ? own : block(room, rank % 2, count, datatype),
                                   recvbuf, count, datatype, op);
        else if (err == MPI_SUCCESS && rank == root)
            err = place_own_block(own, count, datatype, recvbuf, count, datatype, 0);
    }
    if (err != MPI_SUCCESS)
        mpilab_abandon(2, incoming);
    return err;
}

MPILAB_REDUCE(linear)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Send(sendbuf, count, datatype, root, TAG, comm);

    struct mpilab_room room;
    int err = mpilab_make_room(3, count, datatype, &room);
    const void *own = sendbuf;
    /* The last rank's data will arrive where ours is, so ours moves first. */
    if (err == MPI_SUCCESS && sendbuf == MPI_IN_PLACE && root < size - 1) {
        own = block(room.origin, 2, count, datatype);
        err = copy_local(recvbuf, count, datatype, (void *)own, count, datatype);
    }
    if (err == MPI_SUCCESS)
        err = at_root(own, recvbuf, room.origin, count, datatype, op, root, size, comm);
    free(room.memory);
    return err;
}
