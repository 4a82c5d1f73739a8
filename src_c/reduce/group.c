/* Reduce by groups: within each group to its leader, then among the leaders of all groups.
 *
 * The broadcast by groups in reverse: every group sends one message, the result of its ranks.
 * Within a group, ranks are ordered by node, so that the first steps stay within a node.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node, root 0, one segment
 *   round 1   1 -> 0   3 -> 2   5 -> 4   7 -> 6      within nodes
 *   round 2   6 -> 4   2 -> 0                        between nodes of a group
 *   round 3   4 -> 0                                 between groups
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(G) + floor_log2(M // G * Q) + S - 1 if P > 1 else 0
 *           on G groups of M/G nodes of Q ranks
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (G - 1 + binomial_crossings(ranks_by_group)) * m
 *           that is (M - 1) * m, the least, if every node has as many ranks, a power of two; else
 *           at most ⌊log2 k⌋ + 1 messages leave a node of k ranks
 * Between groups: (G - 1) * m
 * Cost: ⌈log2 P/G⌉ (α + mβ + mγ) within groups with γ per byte reduced, then ⌈log2 G⌉ between them.
 * Operations that do not commute are left to the in-order binary tree, which ignores groups.
 * Source: Bijlani, Raol (2021), "group-level optimization".
 */
#include "../common/topology/topology.h"

MPILAB_REDUCE(group)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    struct mpilab_tree tree;
    const int err = mpilab_group_tree(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_reduce_along(&tree, sendbuf, recvbuf, count, datatype, op,
                               mpilab_tuning.segment_bytes, comm);
}
