/* Segmented ring allreduce: the ring allreduce, with blocks sent in segments.
 *
 * As in the ring, each of P blocks goes around and collects every rank's part, but in S segments,
 * so that one segment is reduced while the next is in transit. Two segments are in transit at any
 * time. Then the result blocks go around as a whole.
 *
 *   round 1      round 2       round 3                  P = 2, blocks a and b, S = 4 segments
 *   0 -a1-> 1    0 -a3-> 1     0 -B-> 1                 a1 to a4; B is the result
 *   0 -a2-> 1    0 -a4-> 1     1 -A-> 0
 *   1 -b1-> 0    1 -b3-> 0
 *   1 -b2-> 0    1 -b4-> 0
 *
 * Tunables: segment_bytes (S = ⌈m/P / segment⌉ segments a block; default 64 KiB)
 * Rounds:   (P - 1 if S == 1 else ceil_div((P - 1) * S, 2)) + P - 1
 * Messages: P * (P - 1) * (S + 1)
 * Bytes:    2 * (P - 1) * m
 * Cost: (P-1)(S + 1) α + 2 (P-1)/P mβ, and what of (P-1)/P mγ the messages do not hide (γ per byte
 * reduced): for very long messages. Operations that do not commute are left to recursive doubling.
 * Source: Open MPI 5, coll/base, "ring_segmented".
 */
#include "../common/tree/blocks.h"
#include "../common/tree/tree.h"
#include <stdlib.h>

enum { SEGMENT_BYTES = 65536 };

/* Exchange number i, of (P-1) S, is that of segment i mod S in the ring's round i / S + 1. */
struct ring {
    const void *own; /* `recvbuf` if in place */
    void *recvbuf, *spare;
    int count, segments, rank, size;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
};

static struct mpilab_window segment_of(const struct ring *ring, int index, int number)
{
    const struct mpilab_window all = mpilab_window(index, index, ring->size, ring->count);
    const int part = number % ring->segments;
    const struct mpilab_window in_block = mpilab_window(part, part, ring->segments, all.length);
    return (struct mpilab_window){all.begin + in_block.begin, in_block.length};
}

static struct mpilab_window incoming(const struct ring *ring, int number)
{
    const int round = number / ring->segments + 1;
    return segment_of(ring, (ring->rank - round + ring->size) % ring->size, number);
}

/* A segment comes to where its result will be, unless our own part of it lies there. */
static void *place_of_message(const struct ring *ring, int number)
{
    if (ring->own != ring->recvbuf)
        return block(ring->recvbuf, incoming(ring, number).begin, 1, ring->datatype);
    const int longest = ring->count / ring->size / ring->segments + 2;
    return block(ring->spare, number % 2, longest, ring->datatype);
}

static int start(const struct ring *ring, int number, MPI_Request requests[2])
{
    const int round = number / ring->segments + 1;
    const int size = ring->size;
    const struct mpilab_window in = incoming(ring, number);
    const struct mpilab_window out =
        segment_of(ring, (ring->rank - round + 1 + size) % size, number);
    int err = MPI_Irecv(place_of_message(ring, number), in.length, ring->datatype,
                        (ring->rank + size - 1) % size, TAG, ring->comm, &requests[0]);
    if (err == MPI_SUCCESS)
        err = MPI_Isend(block(round == 1 ? ring->own : ring->recvbuf, out.begin, 1, ring->datatype),
                        out.length, ring->datatype, (ring->rank + 1) % size, TAG, ring->comm,
                        &requests[1]);
    return err;
}

static int finish(const struct ring *ring, int number, MPI_Request requests[2])
{
    const struct mpilab_window in = incoming(ring, number);
    const int in_place = ring->own == ring->recvbuf;
    int err = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (err == MPI_SUCCESS)
        err = MPI_Reduce_local(in_place ? place_of_message(ring, number)
                                        : block(ring->own, in.begin, 1, ring->datatype),
                               block(ring->recvbuf, in.begin, 1, ring->datatype), in.length,
                               ring->datatype, ring->op);
    return err;
}

/* An exchange sends on what came S exchanges before: with one segment that is the last one, which
 * must be finished; with more, it may still be in transit. */
static int reduce_round(const struct ring *ring)
{
    const int exchanges = (ring->size - 1) * ring->segments;
    MPI_Request requests[2][2];
    mpilab_no_requests(4, requests[0]);
    int err = start(ring, 0, requests[0]);
    for (int number = 0; number < exchanges && err == MPI_SUCCESS; number++) {
        const int next = number + 1;
        if (ring->segments > 1 && next < exchanges)
            err = start(ring, next, requests[next % 2]);
        if (err == MPI_SUCCESS)
            err = finish(ring, number, requests[number % 2]);
        if (err == MPI_SUCCESS && ring->segments == 1 && next < exchanges)
            err = start(ring, next, requests[next % 2]);
    }
    for (int i = 0; i < 2 && err != MPI_SUCCESS; i++) {
        mpilab_abandon(1, &requests[i][0]);
        mpilab_leave_sends(1, &requests[i][1]);
    }
    return err;
}

/* Rank r has block r + 1. */
static int gather_round(const struct ring *ring)
{
    const int rank = ring->rank, size = ring->size;
    int err = MPI_SUCCESS;
    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int outgoing = (rank - round + 2 + size) % size;
        const int incoming = (rank - round + 1 + size) % size;
        const struct mpilab_window out = mpilab_window(outgoing, outgoing, size, ring->count);
        const struct mpilab_window in = mpilab_window(incoming, incoming, size, ring->count);
        err = MPI_Sendrecv(
            block(ring->recvbuf, out.begin, 1, ring->datatype), out.length, ring->datatype,
            (rank + 1) % size, TAG, block(ring->recvbuf, in.begin, 1, ring->datatype), in.length,
            ring->datatype, (rank + size - 1) % size, TAG, ring->comm, MPI_STATUS_IGNORE);
    }
    return err;
}

MPILAB_ALLREDUCE(segmented_ring)
{
    int commutes, rank, size;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return allreduce_recursive_doubling(sendbuf, recvbuf, count, datatype, op, comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size == 1)
        return place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);

    const long segment =
        mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : SEGMENT_BYTES;
    const int longest_block = count / size + (count % size > 0);
    struct ring ring = {.own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf,
                        .recvbuf = recvbuf,
                        .count = count,
                        .segments = mpilab_cut(longest_block, datatype, segment).pieces,
                        .rank = rank,
                        .size = size,
                        .datatype = datatype,
                        .op = op,
                        .comm = comm};
    struct mpilab_room spare = {NULL, NULL};
    int err = MPI_SUCCESS;
    if (sendbuf == MPI_IN_PLACE)
        err = mpilab_make_room(2, count / size / ring.segments + 2, datatype, &spare);
    ring.spare = spare.origin;
    if (err == MPI_SUCCESS)
        err = reduce_round(&ring);
    if (err == MPI_SUCCESS)
        err = gather_round(&ring);
    free(spare.memory);
    return err;
}
