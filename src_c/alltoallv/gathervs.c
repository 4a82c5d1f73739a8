/* Alltoallv by one gatherv for each process: everything for p is collected node by node.
 *
 * For each process p in turn, a leader collects what the ranks of its node send to p, p's leader
 * collects that from all leaders, and hands it to p. While the data for one p crosses between
 * nodes, the data for the next goes up. Blocks within a node are sent directly. Large blocks go in
 * T pieces, so that a leader never holds more than B bytes for others.
 *
 *   nodes {0 1} {2 3} {4 5}, leaders 0 2 4                     ab|c = the blocks of a and b for c
 *             for p = 0                  for p = 1                       for p = 2
 *   round 1   3 -3|0-> 2   5 -5|0-> 4
 *   round 2   2 -23|0-> 0  4 -45|0-> 0   3 -3|1-> 2   5 -5|1-> 4
 *   round 3                              2 -23|1-> 0  4 -45|1-> 0        1 -1|2-> 0   5 -5|2-> 4
 *   round 4                              0 -2345|1-> 1                   and so on
 *
 * First, each rank tells its leader how many bytes there are: 16 bytes for each rank of another
 * node. A leader holds 4 areas for pieces of the P - Q ranks of other nodes, or of its Q own.
 *
 * Tunables: budget_bytes (B; default 8 MiB)
 * Pieces:   ceil_div(m, B // (4 * max(Q, P - Q))) if M > 1 else 0
 * Rounds:   (T * P + 2 * (Q > 1) if m > 0 else Q > 1) if M > 1 else (Q > 1) * (m > 0)
 *           on M nodes of Q ranks, if all pairs exchange m bytes; so, too, the next two lines
 * Messages: P * (Q - 1) * (m > 0) + (M > 1) * ((P - M) * (1 + T) + P * (P - Q) * T)
 * Bytes:    V + 2 * (VM - VM // Q) + 16 * (P - M) * (P - Q)
 * Between nodes:  VM
 * Between groups: VG
 * Cost: P(M-1) messages between nodes, of Qm bytes each, and no two of them to one leader's ranks
 * at a time: (α + Qmβ) P(M-1)/M on each leader. Less memory than by leaders, but Q times the
 * messages.
 * Source: the published assignment, section 5, second algorithm.
 */
#include "../common/exchange/routes.h"

MPILAB_ALLTOALLV(gathervs)
{
    const struct mpilab_route route = {mpilab_leader_of, mpilab_leader_there, 1};
    return mpilab_exchange_by(&route, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                              rdispls, recvtype, comm);
}
