/* Ring allreduce: a reduce-scatter around the ring, then an allgather around the ring.
 *
 * The message is cut into P blocks. Each block goes around the ring and collects every rank's part,
 * until after P-1 rounds each rank has one block of the result. In P-1 more rounds, the result
 * blocks go around.
 *
 *   round 1     round 2       round 3       round 4       P = 3, blocks a, b, c; a' has two parts,
 *   0 -a-> 1    0 -c'-> 1     0 -B-> 1      0 -A-> 1      A is the result
 *   1 -b-> 2    1 -a'-> 2     1 -C-> 2      1 -B-> 2
 *   2 -c-> 0    2 -b'-> 0     2 -A-> 0      2 -C-> 0
 *
 * Rounds:   2 * (P - 1)
 * Messages: 2 * P * (P - 1)
 * Bytes:    2 * (P - 1) * m
 * Cost: 2 (P-1) α + 2 (P-1)/P mβ + (P-1)/P mγ with γ per byte reduced: the fewest bytes possible,
 * and only neighbors communicate: best for long messages. Operations that do not commute are left
 * to recursive doubling.
 * Source: Patarasuk, Yuan (2009); Open MPI 5, coll/base, "ring".
 */
#include "../common/tree/blocks.h"
#include <stdlib.h>

/* A block comes to where its result will be, and our own part is taken in there. If that is where
 * our own part lies (`own` is `recvbuf`), it comes to `spare` first. */
static int reduce_round(const void *own, void *recvbuf, void *spare, int count,
                        MPI_Datatype datatype, MPI_Op op, int rank, int size, MPI_Comm comm)
{
    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;
    int err = MPI_SUCCESS;
    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int outgoing = (rank - round + 1 + size) % size;
        const int incoming = (rank - round + size) % size;
        const struct mpilab_window out = mpilab_window(outgoing, outgoing, size, count);
        const struct mpilab_window in = mpilab_window(incoming, incoming, size, count);
        void *result = block(recvbuf, in.begin, 1, datatype);
        void *message = own == recvbuf ? spare : result;
        err = MPI_Sendrecv(block(round == 1 ? own : recvbuf, out.begin, 1, datatype), out.length,
                           datatype, right, TAG, message, in.length, datatype, left, TAG, comm,
                           MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(own == recvbuf ? spare : block(own, in.begin, 1, datatype),
                                   result, in.length, datatype, op);
    }
    return err;
}

/* Rank r has block r + 1. */
static int gather_round(void *recvbuf, int count, MPI_Datatype datatype, int rank, int size,
                        MPI_Comm comm)
{
    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;
    int err = MPI_SUCCESS;
    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int outgoing = (rank - round + 2 + size) % size;
        const int incoming = (rank - round + 1 + size) % size;
        const struct mpilab_window out = mpilab_window(outgoing, outgoing, size, count);
        const struct mpilab_window in = mpilab_window(incoming, incoming, size, count);
        err = MPI_Sendrecv(block(recvbuf, out.begin, 1, datatype), out.length, datatype, right, TAG,
                           block(recvbuf, in.begin, 1, datatype), in.length, datatype, left, TAG,
                           comm, MPI_STATUS_IGNORE);
    }
    return err;
}

MPILAB_ALLREDUCE(ring)
{
    int commutes, rank, size;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return allreduce_recursive_doubling(sendbuf, recvbuf, count, datatype, op, comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size == 1)
        return place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);

    const void *own = sendbuf;
    struct mpilab_room spare = {NULL, NULL};
    int err = MPI_SUCCESS;
    if (sendbuf == MPI_IN_PLACE) {
        own = recvbuf;
        err = mpilab_make_room(1, count / size + 1, datatype, &spare);
    }
    if (err == MPI_SUCCESS)
        err = reduce_round(own, recvbuf, spare.origin, count, datatype, op, rank, size, comm);
    if (err == MPI_SUCCESS)
        err = gather_round(recvbuf, count, datatype, rank, size, comm);
    free(spare.memory);
    return err;
}
