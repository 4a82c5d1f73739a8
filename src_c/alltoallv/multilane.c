/* Multi-lane alltoallv: every core of a host drives the network.
 *
 * The ranks at the same place on their nodes make a *lane*. A rank sends everything for a node to
 * the rank there in its lane, which distributes it. So each lane carries 1/Q of the bytes, all at
 * once, whereas leaders carry them all. If a node has fewer ranks than there are lanes, lanes share
 * its ranks. Blocks within a node are sent directly. Large blocks go in T pieces, so that no rank
 * ever holds more than B bytes for others.
 *
 *   nodes {0 1} {2 3} {4 5}, lanes {0 2 4} {1 3 5}            a|b = the blocks of a for those of b
 *   round 2   0 -0|23-> 2   0 -0|45-> 4   1 -1|23-> 3   1 -1|45-> 5   2 -2|01-> 0   and so on
 *   round 3   0 -24|1-> 1   1 -35|0-> 0   2 -04|3-> 3   3 -15|2-> 2   4 -02|5-> 5   5 -13|4-> 4
 *
 * In round 1, each rank tells its peers how much they will have for it (8 bytes for each rank of
 * their lanes), and sends peers their blocks directly. A rank holds 4 areas for pieces of P - Q
 * pairs.
 *
 * Tunables: budget_bytes (B; default 8 MiB)
 * Pieces:   ceil_div(m, B // (4 * (P - Q))) if M > 1 else 0
 * Rounds:   T * ceil_div(M - 1, min(32, max(1, 4096 // M))) + (Q > 1) * ((M > 1) + (m > 0))
 *           on M nodes of Q ranks, if all pairs exchange m bytes; so, too, the next two lines
 * Messages: P * (Q - 1) * ((m > 0) + (M > 1) * (1 + T)) + P * (M - 1) * T
 * Bytes:    V + VM - VM // Q + 8 * P * (Q - 1) * (M - 1)
 * Between nodes:  VM
 * Between groups: VG
 * Cost: (M-1)(α + Qmβ) between nodes on each of Q lanes, then (Q-1)(α + (P-Q)/Q mβ) on the node. A
 * byte moves at most twice; with leaders, up to three times.
 * Source: Träff, Hunold (2020), "Decomposing MPI collectives for exploiting multi-lane
 * communication", full-lane alltoall, here for any counts and for nodes of different sizes.
 */
#include "../common/exchange/routes.h"

static int itself(const struct mpilab_topology *topology, int rank)
{
    (void)topology;
    return rank;
}

static int in_its_lane(const struct mpilab_topology *topology, int rank, int node)
{
    const int lane = topology->position[rank] - topology->node_begin[topology->node[rank]];
    const int begin = topology->node_begin[node], peers = topology->node_begin[node + 1] - begin;
    return topology->order[begin + lane % peers];
}

MPILAB_ALLTOALLV(multilane)
{
    const struct mpilab_route route = {itself, in_its_lane, 0};
    return mpilab_exchange_by(&route, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                              rdispls, recvtype, comm);
}
