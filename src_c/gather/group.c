/* Gather by groups: the ranks of a group send to its leader, the leaders to the root.
 *
 * Like the gather by nodes, but with one message from each other group: useful if a link between
 * groups has a high start-up cost, or floods when many ranks send through it at once.
 *
 *   groups {0 2 4} {1 3 5}, a node each rank, root 0                number = blocks sent
 *   round 1   2 -2-> 0   4 -4-> 0   3 -3-> 1   5 -5-> 1
 *   round 2   1 -1,3,5-> 0                                          the one between groups
 *
 * Rounds:   (1 if P > G else 0) + (1 if G > 1 else 0)
 * Messages: P - 1
 * Bytes:    (2 * P - G - U) * m
 * Between nodes:  (2 * P - L - U) * m
 * Between groups: (P - U) * m
 * Cost: 2α + (P-U)mβ at the link of the root's group. Blocks of another group that do not come from
 * its leader's node go between nodes twice, and nothing reaches the root before a leader has
 * everything.
 * Source: Bijlani, Raol (2021), "CS633: Assignment 2", section 4.
 */
#include "../common/topology/gathering.h"

MPILAB_GATHER(group)
{
    return mpilab_gather_by(mpilab_height_by_group, sendbuf, sendcount, sendtype, recvbuf,
                            recvcount, recvtype, root, comm);
}
