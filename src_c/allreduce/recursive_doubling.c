/* Recursive doubling allreduce.
 *
 * In step i ranks that differ in bit i swap what they have, and both reduce it: after it, each has
 * the result of the 2^(i+1) ranks of its group. This needs a power of two. Let C be the largest one
 * not above P: of the first 2 (P-C) ranks, each odd one sends its data to its left neighbor
 * beforehand, and gets the result from there. Neighbors fold, and groups are combined in the order
 * of ranks, so any operation works.
 *
 *   round 1              round 2                        P = 4
 *   0 <-> 1   2 <-> 3    0 <-> 2   1 <-> 3
 *
 *   round 1   round 2    round 3                        P = 3, C = 2
 *   1 -> 0    0 <-> 2    0 -> 1
 *
 * Rounds:   floor_log2(P) + (0 if P == 2 ** floor_log2(P) else 2)
 * Messages: 2 ** floor_log2(P) * floor_log2(P) + 2 * (P - 2 ** floor_log2(P))
 * Bytes:    (2 ** floor_log2(P) * floor_log2(P) + 2 * (P - 2 ** floor_log2(P))) * m
 * Cost: log2(P) (α + mβ + mγ) for a power of two, with γ per byte reduced; otherwise two more
 * rounds: best for short messages.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4.5.
 */
#include "../common/tree/blocks.h"
#include <stdlib.h>

struct operands {
    const void *sendbuf; /* or MPI_IN_PLACE */
    void *recvbuf, *spare;
    void *own; /* where this rank's part of the result is; NULL: still in `sendbuf` */
    int count, commutes;
    MPI_Datatype datatype;
    MPI_Op op;
};

static const void *own(const struct operands *data)
{
    return data->own == NULL ? data->sendbuf : data->own;
}

static void *incoming(const struct operands *data)
{
    return data->own == data->recvbuf ? data->spare : data->recvbuf;
}

/* MPI_Reduce_local(a, b) puts a op b into b: the data of the lower ranks must come first. */
static int take_in(struct operands *data, int from_higher_ranks)
{
    void *other = incoming(data);
    const int into_own = data->own != NULL && (data->commutes || !from_higher_ranks);
    if (into_own)
        return MPI_Reduce_local(other, data->own, data->count, data->datatype, data->op);
    const int err = MPI_Reduce_local(own(data), other, data->count, data->datatype, data->op);
    data->own = other;
    return err;
}

/* Swap with partners at distance 1, 2, 4, ... Numbers leave out the ranks that have folded. */
static int swap_with_all(struct operands *data, int number, int core, int folded, MPI_Comm comm)
{
    int err = MPI_SUCCESS;
    for (int distance = 1; distance < core && err == MPI_SUCCESS; distance *= 2) {
        const int partner = number ^ distance;
        const int rank = partner < folded ? 2 * partner : partner + folded;
        err = MPI_Sendrecv(own(data), data->count, data->datatype, rank, TAG, incoming(data),
                           data->count, data->datatype, rank, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = take_in(data, partner > number);
    }
    return err;
}

/* The ranks that stay: `folding` is the right neighbor that folds, or MPI_PROC_NULL. */
static int reduce_in_core(struct operands *data, int rank, int core, int folded, int folding,
                          MPI_Comm comm)
{
    int err = MPI_SUCCESS;
    /* Lower ranks' data are put to the left of our own, which then must be in our memory. */
    if (!data->commutes && data->own == NULL) {
        err = copy_local(data->sendbuf, data->count, data->datatype, data->recvbuf, data->count,
                         data->datatype);
        data->own = data->recvbuf;
    }
    if (err == MPI_SUCCESS && folding != MPI_PROC_NULL) {
        err = MPI_Recv(incoming(data), data->count, data->datatype, folding, TAG, comm,
                       MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = take_in(data, 1);
    }
    if (err == MPI_SUCCESS)
        err = swap_with_all(data, rank < 2 * folded ? rank / 2 : rank - folded, core, folded, comm);
    if (err == MPI_SUCCESS)
        err = MPI_Send(own(data), data->count, data->datatype, folding, TAG, comm);
    if (err == MPI_SUCCESS && own(data) != data->recvbuf)
        err = copy_local(own(data), data->count, data->datatype, data->recvbuf, data->count,
                         data->datatype);
    return err;
}

MPILAB_ALLREDUCE(recursive_doubling)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int core = mpilab_power_of_two(size);
    const int folded = size - core;
    const int in_place = sendbuf == MPI_IN_PLACE;

    if (rank < 2 * folded && rank % 2 == 1) {
        int err = MPI_Send(in_place ? recvbuf : sendbuf, count, datatype, rank - 1, TAG, comm);
        if (err == MPI_SUCCESS)
            err = MPI_Recv(recvbuf, count, datatype, rank - 1, TAG, comm, MPI_STATUS_IGNORE);
        return err;
    }
    struct mpilab_room spare;
    int err = mpilab_make_room(1, count, datatype, &spare);
    struct operands data = {sendbuf, recvbuf, spare.origin, in_place ? recvbuf : NULL,
                            count,   1,       datatype,     op};
    MPI_Op_commutative(op, &data.commutes);
    if (err == MPI_SUCCESS)
        err = reduce_in_core(&data, rank, core, folded,
                             rank < 2 * folded ? rank + 1 : MPI_PROC_NULL, comm);
    free(spare.memory);
    return err;
}
