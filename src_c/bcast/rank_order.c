/* Binomial broadcast over the ranks in another order: by group and node, the root's first.
 *
 * Only the order differs from the binomial broadcast: the ranks of a node are consecutive, and so
 * are those of a group. The tree's long steps come first, and cross between nodes; the last ones,
 * the most numerous, stay within a node.
 *
 *   ranks dealt in turn to the nodes n1 to n4, root 0; order 0 4 1 5 2 6 3 7, one segment
 *   round 1   0 -> 2   0 -> 1   0 -> 4       n1 -> n3   n1 -> n2   within n1
 *   round 2   2 -> 3   2 -> 6   1 -> 5       n3 -> n4   within n3, n2
 *   round 3   3 -> 7                         within n4
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(P) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  binomial_crossings(node_ranks) * m
 *           that is (M - 1) * m, the least, if every node has as many ranks, a power of two; else
 *           at most ⌊log2 k⌋ + 1 messages enter a node of k ranks
 * Between groups: binomial_crossings(group_ranks) * m
 *           likewise: (G - 1) * m, or at most ⌊log2 k⌋ + 1 messages into a group of k ranks
 * Cost: ⌈log2 P⌉ (α + mβ), of which ⌈log2 G⌉ between groups and ⌈log2 M/G⌉ between nodes, if all
 * are alike and powers of two.
 * Source: Bijlani, Raol (2021), "rank placements optimization".
 */
#include "../common/topology/topology.h"

MPILAB_BCAST(rank_order)
{
    struct mpilab_tree tree;
    const int err = mpilab_rank_order_tree(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
