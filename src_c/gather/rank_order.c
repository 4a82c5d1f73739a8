/* Gather up a binomial tree over the ranks in the order of their places.
 *
 * The ranks get new numbers v by group, node and rank, the root's group and node first and the root
 * v = 0. The binomial gather uses these numbers: a rank collects the blocks of v, v+1, v+2, ..., so
 * most messages stay within a node, whatever the placement. The root receives each message directly
 * into the places of the real ranks.
 *
 *   nodes {0 2} {1 3}, root 0: v = 0 1 2 3 are the ranks 0 2 1 3    number = blocks sent
 *   round 1   2 -2-> 0   3 -3-> 1
 *   round 2   1 -1,3-> 0                                            the one between nodes
 *
 * Rounds:   floor_log2(P)
 * Messages: P - 1
 * Bytes:    binomial_hops(P, P) * m
 * Between nodes:  crossing_hops(node_ranks) * m
 * Between groups: crossing_hops(group_ranks) * m
 *           where a block counts as often as it goes from node to node, or from group to group
 * Cost: ⌈log2 P⌉ α + (P-1)mβ at the root, for short blocks and many ranks. If nodes and groups are
 * alike and powers of two, what goes within a node comes before what goes between nodes, and that
 * before what goes between groups; but a block may go through several nodes and groups on its way.
 * Source: Bijlani, Raol (2021), "CS633: Assignment 2", section 4 ("rank optimization").
 */
#include "../common/topology/gathering.h"

/* The lowest 1 bit of a rank's number, which gives its height in the binomial tree. */
static int height(const struct mpilab_topology *topology, const int *order, int position)
{
    (void)topology, (void)order;
    return position & -position;
}

MPILAB_GATHER(rank_order)
{
    return mpilab_gather_by(height, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                            root, comm);
}
