/* Alltoallv by leaders: gatherv on each node, alltoallv among the leaders, scatterv on each node.
 *
 * A leader collects what the ranks of its node send to other nodes, exchanges it with the other
 * leaders, one message per pair of nodes, and distributes what arrives. Blocks within a node are
 * sent directly. Large blocks go in T pieces, so that a leader never holds more than B bytes for
 * others.
 *
 *   nodes {0 1} {2 3} {4 5}, leaders 0 2 4                     a|b = the blocks of a for those of b
 *   round 1   1 -1|2345-> 0    3 -3|0145-> 2    5 -5|0123-> 4      and 0 <-> 1, 2 <-> 3, 4 <-> 5
 *   round 2   0 -01|23-> 2     0 -01|45-> 4     2 -23|01-> 0     and so on
 *   round 3   0 -2345|1-> 1    2 -0145|3-> 3    4 -0123|5-> 5
 *
 * First, each rank tells its leader how many bytes there are: 16 bytes for each rank of another
 * node. If it has at most 2048 bytes for other nodes, its first piece is piggybacked on that
 * message; otherwise it follows immediately. A leader holds 4 areas for pieces of its Q ranks and
 * P - Q others.
 *
 * Tunables: budget_bytes (B; default 8 MiB)
 * Pieces:   ceil_div(m, B // (4 * Q * (P - Q))) if M > 1 else 0
 * Rounds:   T * ceil_div(M - 1, min(32, max(1, 4096 // M))) + (Q > 1) * ((M > 1) + (m > 0))
 *           on M nodes of Q ranks, if all pairs exchange m bytes; so, too, the next two lines
 * Messages: P*(Q-1)*(m>0) + M*(M-1)*T + (M>1)*(P-M)*(1 + 2*T - (m>0)*(m*(P-Q) <= 2048))
 * Bytes:    V + 2 * (VM - VM // Q) + 16 * (P - M) * (P - Q)
 * Between nodes:  VM
 * Between groups: VG
 * Cost: M-1 messages per leader instead of Q(P-Q) per node: (M-1)(α + Q²mβ) between nodes, while
 * the other cores' lanes are idle; for short blocks and many ranks per node.
 * Source: Kumar et al. (2008), "Scaling alltoall collective on multi-core systems"; the published
 * assignment, section 5, whose leaders held everything at once and ran out of memory at 256 KB.
 */
#include "../common/exchange/routes.h"

MPILAB_ALLTOALLV(leaders)
{
    const struct mpilab_route route = {mpilab_leader_of, mpilab_leader_there, 0};
    return mpilab_exchange_by(&route, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                              rdispls, recvtype, comm);
}
