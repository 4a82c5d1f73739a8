/* Reduce up a binary tree that keeps the order of ranks, in segments.
 *
 * All ranks under the first of two children are lower than the rank itself, all under the other are
 * higher: a rank computes lower op own op higher, which keeps the order of ranks for any operation.
 * The ranks below the root are under one of its children, those above it under the other.
 *
 *   round 1                              round 2              round 3      P = 8, root 4,
 *   0 -> 1   3 -> 2   5 -> 6   7 -> 6    2 -> 1   6 -> 4      1 -> 4       one segment
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   ceil_log2(max(root, P - 1 - root) + 1) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: (⌈log2 P⌉ + S - 1)(α + 2 (m/S)(β + γ)) at most, with γ per byte reduced: for operations
 * that do not commute. With the root in the middle, it takes one round less.
 * Source: Open MPI 5, coll/base, "in-order_binary" (whose tree ends at rank P-1 for any root; from
 * there the result takes one more message).
 */
#include "../common/tree/blocks.h"
#include "../common/tree/tree.h"
#include <stdlib.h>

MPILAB_REDUCE(in_order_binary)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    struct mpilab_tree tree;
    struct mpilab_room aside = {NULL, NULL};
    const void *own = sendbuf;

    int err = mpilab_in_order_tree(root, comm, &tree);
    if (rank == root && root == size - 1) {
        /* No rank is higher: our own data comes last. */
        own = MPI_IN_PLACE;
        if (err == MPI_SUCCESS)
            err = place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);
    } else if (rank == root && sendbuf == MPI_IN_PLACE) {
        /* Data from higher ranks will arrive where our own data is, so that moves first. */
        if (err == MPI_SUCCESS)
            err = mpilab_make_room(1, count, datatype, &aside);
        own = aside.origin;
        if (err == MPI_SUCCESS)
            err = copy_local(recvbuf, count, datatype, aside.origin, count, datatype);
    }
    if (err == MPI_SUCCESS)
        err = mpilab_reduce_along(&tree, own, recvbuf, count, datatype, op,
                                  mpilab_tuning.segment_bytes, comm);
    free(aside.memory);
    return err;
}
