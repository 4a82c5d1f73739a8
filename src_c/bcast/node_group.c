/* Broadcast by levels: one tree over the groups, one over the nodes of each group, one over the
 * ranks of each node.
 *
 * Every group and every node gets the message once, through its leader; the root leads its own. The
 * three binomial trees make one, down which the message travels in segments: a leader serves its
 * group's nodes while the next segment is on its way from another group.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node, root 0, one segment
 *   round 1   0 -> 4   0 -> 2   0 -> 1        round 2   4 -> 6   4 -> 5   2 -> 3
 *   round 3   6 -> 7                          0 -> 4 is between groups, 0 -> 2 and 4 -> 6 between
 *                                             nodes, the others are within them
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(G) + floor_log2(M // G) + floor_log2(Q) + S - 1 if P > 1 else 0
 *           on G groups of M/G nodes of Q ranks
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (M - 1) * m
 * Between groups: (G - 1) * m
 * Cost: ⌈log2 G⌉ (α + mβ) between groups, then ⌈log2 M/G⌉ between nodes and ⌈log2 Q⌉ within them.
 * Source: Karonis et al. (2000), "Exploiting hierarchy in parallel computer networks".
 */
#include "../common/topology/topology.h"

MPILAB_BCAST(node_group)
{
    struct mpilab_tree tree;
    const int err = mpilab_node_group_tree(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
