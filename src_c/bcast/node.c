/* Broadcast by nodes: one tree over the leaders of all nodes, one over the ranks of each node.
 *
 * Every node gets the message once, through its leader; the root leads its own. The leaders stand
 * by groups, so that the last steps among them stay within a group.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node, root 0, one segment
 *   round 1   0 -> 4   0 -> 2   0 -> 1      0 -> 4 is between groups
 *   round 2   4 -> 6   4 -> 5   2 -> 3      4 -> 6 and 0 -> 2 are between nodes of a group
 *   round 3   6 -> 7
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(M) + floor_log2(Q) + S - 1 if P > 1 else 0
 *           on M nodes of Q ranks
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (M - 1) * m
 * Between groups: binomial_crossings(group_nodes) * m
 *           that is (G - 1) * m, the least, if every group has as many nodes, a power of two; else
 *           at most ⌊log2 k⌋ + 1 messages enter a group of k nodes
 * Cost: ⌈log2 M⌉ (α + mβ) between nodes, then ⌈log2 Q⌉ within them: for clusters without groups.
 * Source: Bijlani, Raol (2021), "node level optimization only"; Husbands, Hoe (1998), "MPI-StarT".
 */
#include "../common/topology/topology.h"

MPILAB_BCAST(node)
{
    struct mpilab_tree tree;
    const int err = mpilab_node_tree(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
