/* Linear alltoallv: all pairs at once.
 *
 * Every rank starts a receive from and a send to every other rank that it has something to exchange
 * with, and waits for all of them together. Each starts with the ranks next to it, so that none is
 * flooded. No message is sent for a pair without data.
 *
 *   round 1                                       P = 4, ij = the block from i to j
 *   0 -01-> 1   0 -02-> 2   0 -03-> 3
 *   1 -12-> 2   1 -13-> 3   1 -10-> 0
 *   2 -23-> 3   2 -20-> 0   2 -21-> 1
 *   3 -30-> 0   3 -31-> 1   3 -32-> 2
 *
 * MPI_IN_PLACE: what is sent is copied first.
 *
 * Rounds:   (P > 1) * (m > 0)
 * Messages: P * (P - 1) * (m > 0)
 * Bytes:    V
 *           where all pairs exchange m bytes; with any other counts, V bytes as well
 * Cost: (P-1)(α + mβ) with one port per rank, and α + (P-1)mβ if start-ups overlap. With q ranks
 * per node, q² messages go between each two nodes.
 * Source: Open MPI 5, coll/base, "basic_linear"; MPICH, "scattered" without its batches.
 */
#include "../common/exchange/exchange.h"

MPILAB_ALLTOALLV(linear)
{
    struct mpilab_exchange exchange;
    struct mpilab_direct direct = {NULL, 0, 0};
    int err = mpilab_begin_exchange(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                    rdispls, recvtype, comm, &exchange);
    if (err == MPI_SUCCESS)
        err = mpilab_begin_direct(&exchange, NULL, exchange.size, &direct);
    err = mpilab_end_direct(&exchange, &direct, err);
    mpilab_end_exchange(&exchange);
    return err;
}
