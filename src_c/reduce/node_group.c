/* Reduce by levels: within each node, then among the nodes of each group, then among the groups.
 *
 * The broadcast by levels in reverse: every node and every group sends one message, through its
 * leader; the root leads its own. The three binomial trees form one, up which the message travels
 * in segments.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node, root 0, one segment
 *   round 1   1 -> 0   3 -> 2   5 -> 4   7 -> 6      within nodes
 *   round 2   6 -> 4   2 -> 0                        between nodes of a group
 *   round 3   4 -> 0                                 between groups
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(G) + floor_log2(M // G) + floor_log2(Q) + S - 1 if P > 1 else 0
 *           on G groups of M/G nodes of Q ranks
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (M - 1) * m
 * Between groups: (G - 1) * m
 * Cost: ⌈log2 Q⌉ (α + mβ + mγ) within nodes with γ per byte reduced, then ⌈log2 M/G⌉ between nodes
 * and ⌈log2 G⌉ between groups. Operations that do not commute are left to the in-order binary tree,
 * which ignores levels.
 * Source: Karonis et al. (2000), "Exploiting hierarchy in parallel computer networks".
 */
#include "../common/topology/topology.h"

MPILAB_REDUCE(node_group)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    struct mpilab_tree tree;
    const int err = mpilab_node_group_tree(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_reduce_along(&tree, sendbuf, recvbuf, count, datatype, op,
                               mpilab_tuning.segment_bytes, comm);
}
