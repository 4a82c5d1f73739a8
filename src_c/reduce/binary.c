/* Reduce up a binary tree, in segments.
 *
 * Rank v (counted from the root) receives the results of 2v+1 and 2v+2, and sends its own up. With
 * another fan-out K it has K children.
 *
 *   round 1                      round 2            P = 6, K = 2, one segment, root 0
 *   3 -> 1   4 -> 1   5 -> 2     1 -> 0   2 -> 0
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one), fanout (K; default 2)
 * Rounds:   kary_depth(P, K) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: (⌊log2 P⌋ + S - 1)(α + 2 (m/S)(β + γ)) with γ per byte reduced: few rounds, and no rank
 * receives from more than two. Operations that do not commute are left to the in-order binary tree.
 * Source: Open MPI 5, coll/base, "binary".
 */
#include "../common/tree/tree.h"

MPILAB_REDUCE(binary)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    const int fanout = mpilab_tuning.fanout > 0 ? mpilab_tuning.fanout : 2;
    struct mpilab_tree tree;
    const int err = mpilab_kary_tree(fanout, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_reduce_along(&tree, sendbuf, recvbuf, count, datatype, op,
                               mpilab_tuning.segment_bytes, comm);
}
