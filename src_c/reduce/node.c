/* Reduce by nodes: within each node to its leader, then among the leaders of all nodes.
 *
 * The broadcast by nodes in reverse: every node sends one message, the result of its ranks. The
 * leaders are ordered by group, so that the first steps among them stay within a group.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node, root 0, one segment
 *   round 1   1 -> 0   3 -> 2   5 -> 4   7 -> 6      within nodes
 *   round 2   6 -> 4   2 -> 0                        between nodes of a group
 *   round 3   4 -> 0                                 between groups
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(M) + floor_log2(Q) + S - 1 if P > 1 else 0
 *           on M nodes of Q ranks
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (M - 1) * m
 * Between groups: binomial_crossings(group_nodes) * m
 *           that is (G - 1) * m, the least, if every group has as many nodes, a power of two; else
 *           at most ⌊log2 k⌋ + 1 messages leave a group of k nodes
 * Cost: ⌈log2 Q⌉ (α + mβ + mγ) within nodes with γ per byte reduced, then ⌈log2 M⌉ between them.
 * Operations that do not commute are left to the in-order binary tree, which ignores nodes.
 * Source: Bijlani, Raol (2021), "node level optimization".
 */
#include "../common/topology/topology.h"

MPILAB_REDUCE(node)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    struct mpilab_tree tree;
    const int err = mpilab_node_tree(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_reduce_along(&tree, sendbuf, recvbuf, count, datatype, op,
                               mpilab_tuning.segment_bytes, comm);
}
