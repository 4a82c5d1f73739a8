/* Pairwise alltoallv: one partner at a time.
 *
 * In step s each rank sends to rank + s and receives from rank - s, both in one MPI_Sendrecv: every
 * rank sends exactly one message and receives one. No message is sent for a pair without data.
 *
 *   round 1        round 2        round 3        P = 4, ij = the block from i to j
 *   0 -01-> 1      0 -02-> 2      0 -03-> 3
 *   1 -12-> 2      1 -13-> 3      1 -10-> 0
 *   2 -23-> 3      2 -20-> 0      2 -21-> 1
 *   3 -30-> 0      3 -31-> 1      3 -32-> 2
 *
 * MPI_IN_PLACE: what is sent is copied first.
 *
 * Rounds:   (P - 1) * (m > 0)
 * Messages: P * (P - 1) * (m > 0)
 * Bytes:    V
 *           where all pairs exchange m bytes; with any other counts, V bytes as well
 * Cost: (P-1)(α + mβ). No rank is flooded and no link is shared more than necessary, but each step
 * waits for its slowest pair: with uneven counts, this adds up.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4.4; Open MPI 5, coll/base, "pairwise".
 */
#include "../common/exchange/exchange.h"

static int step_of(const struct mpilab_exchange *exchange, int step)
{
    const int dest = (exchange->rank + step) % exchange->size;
    const int source = (exchange->rank - step + exchange->size) % exchange->size;
    const struct mpilab_message block = mpilab_block_for(exchange, dest);
    return MPI_Sendrecv(block.data, block.count, block.type,
                        mpilab_bytes_to(exchange, dest) > 0 ? dest : MPI_PROC_NULL, TAG,
                        mpilab_block_from(exchange, source), exchange->received.counts[source],
                        exchange->received.type,
                        mpilab_bytes_from(exchange, source) > 0 ? source : MPI_PROC_NULL, TAG,
                        exchange->comm, MPI_STATUS_IGNORE);
}

MPILAB_ALLTOALLV(pairwise)
{
    struct mpilab_exchange exchange;
    struct mpilab_direct own = {NULL, 0, 0};
    int err = mpilab_begin_exchange(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                    rdispls, recvtype, comm, &exchange);
    if (err == MPI_SUCCESS)
        err = mpilab_begin_direct(&exchange, &exchange.rank, 1, &own);
    err = mpilab_end_direct(&exchange, &own, err);
    for (int step = 1; step < exchange.size && err == MPI_SUCCESS; step++)
        err = step_of(&exchange, step);
    mpilab_end_exchange(&exchange);
    return err;
}
