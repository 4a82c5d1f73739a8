/* Gather by nodes: the ranks of a node send to its leader, the leaders to the root.
 *
 * A leader sends the blocks of its node to the root in one message, in the order of the ranks
 * there. The root, which leads its own node, receives each message directly into place.
 *
 *   nodes {0 2} {1 3}, root 0                                       number = blocks sent
 *   round 1   2 -2-> 0   3 -3-> 1
 *   round 2   1 -1,3-> 0                                            the one between nodes
 *
 * Rounds:   (1 if Q > 1 else 0) + (1 if M > 1 else 0)
 * Messages: P - 1
 * Bytes:    (2 * P - M - R) * m
 * Between nodes:  (P - R) * m
 * Between groups: (P - U) * m
 * Cost: 2α + (P-R)mβ at the root's node, whose link every other node's blocks must pass anyway; it
 * saves messages: the root receives M-1 from other nodes, not P-R. A leader needs room for its
 * node's blocks, and is idle until it has them all.
 * Source: Karonis et al. (2000), "Exploiting hierarchy in parallel computer networks"; Bijlani,
 * Raol (2021), "CS633: Assignment 2", section 4 (whose root sorts the blocks in a second buffer).
 */
#include "../common/topology/gathering.h"

MPILAB_GATHER(node)
{
    return mpilab_gather_by(mpilab_height_by_node, sendbuf, sendcount, sendtype, recvbuf, recvcount,
                            recvtype, root, comm);
}
