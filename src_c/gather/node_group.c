/* Gather by nodes and groups: ranks send to the leader of their node, those to the leader of their
 * group, those to the root.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node, root 0            number = blocks sent
 *   round 1   1 -1-> 0   3 -3-> 2   5 -5-> 4   7 -7-> 6             within nodes
 *   round 2   2 -2,3-> 0   6 -6,7-> 4                               between nodes
 *   round 3   4 -4,5,6,7-> 0                                        between groups
 *
 * Rounds:   (1 if Q > 1 else 0) + (1 if M > G else 0) + (1 if G > 1 else 0)
 * Messages: P - 1
 * Bytes:    (3 * P - M - L - U) * m
 * Between nodes:  (2 * P - L - U) * m
 * Between groups: (P - U) * m
 * Cost: 3α + (P-U)mβ at the link of the root's group: the fewest messages to every leader, so for
 * short blocks on many groups. A leader needs room for all blocks that it hands up, and the link of
 * the root's group is idle until the first leader has them (gather/pipelined.c has no such pause).
 * Source: Karonis et al. (2000), "Exploiting hierarchy in parallel computer networks"; Bijlani,
 * Raol (2021), "CS633: Assignment 2", section 4.
 */
#include "../common/topology/gathering.h"

MPILAB_GATHER(node_group)
{
    return mpilab_gather_by(mpilab_height_by_node_group, sendbuf, sendcount, sendtype, recvbuf,
                            recvcount, recvtype, root, comm);
}
