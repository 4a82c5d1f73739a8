/* Binomial reduce over the ranks in another order: by group and node, the root's first.
 *
 * Only the order differs from the binomial reduce: the ranks of a node are consecutive, and so are
 * those of a group. The tree's short steps, the most numerous, stay within a node; the long ones
 * carry reduced data between nodes.
 *
 *   ranks dealt in turn to the nodes n1 to n4, root 0; order 0 4 1 5 2 6 3 7, one segment
 *   round 1   4 -> 0   5 -> 1   6 -> 2   7 -> 3      within n1, n2, n3, n4
 *   round 2   1 -> 0   3 -> 2                        n2 -> n1   n4 -> n3
 *   round 3   2 -> 0                                 n3 -> n1
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(P) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  binomial_crossings(node_ranks) * m
 *           that is (M - 1) * m, the least, if every node has as many ranks, a power of two; else
 *           at most ⌊log2 k⌋ + 1 messages leave a node of k ranks
 * Between groups: binomial_crossings(group_ranks) * m
 *           likewise: (G - 1) * m, or at most ⌊log2 k⌋ + 1 messages out of a group of k ranks
 * Cost: ⌈log2 P⌉ (α + mβ + mγ) with γ per byte reduced, of which ⌈log2 M/G⌉ between nodes and
 * ⌈log2 G⌉ between groups, if all are alike and powers of two. Operations that do not commute are
 * left to the in-order binary tree, which ignores nodes.
 * Source: Bijlani, Raol (2021), "rank placements optimization".
 */
#include "../common/topology/topology.h"

MPILAB_REDUCE(rank_order)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    struct mpilab_tree tree;
    const int err = mpilab_rank_order_tree(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_reduce_along(&tree, sendbuf, recvbuf, count, datatype, op,
                               mpilab_tuning.segment_bytes, comm);
}
