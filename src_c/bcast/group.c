/* Broadcast by groups: one tree over the leaders of all groups, one over the ranks of each group.
 *
 * Every group gets the message once, through its leader; the root leads its own. Within a group,
 * ranks are ordered by node, so that the last steps stay within a node.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node, root 0, one segment
 *   round 1   0 -> 4   0 -> 2   0 -> 1      0 -> 4 is between groups
 *   round 2   4 -> 6   4 -> 5   2 -> 3      4 -> 6 and 0 -> 2 are between nodes of a group
 *   round 3   6 -> 7
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(G) + floor_log2(M // G * Q) + S - 1 if P > 1 else 0
 *           on G groups of M/G nodes of Q ranks
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (G - 1 + binomial_crossings(ranks_by_group)) * m
 *           that is (M - 1) * m, the least, if every node has as many ranks, a power of two; else
 *           at most ⌊log2 k⌋ + 1 messages enter a node of k ranks
 * Between groups: (G - 1) * m
 * Cost: ⌈log2 G⌉ (α + mβ) between groups, then ⌈log2 P/G⌉ within them: for one rank a node.
 * Source: Bijlani, Raol (2021), "group-level optimization only".
 */
#include "../common/topology/topology.h"

MPILAB_BCAST(group)
{
    struct mpilab_tree tree;
    const int err = mpilab_group_tree(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
