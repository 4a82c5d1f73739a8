/* Neighbor exchange allgather.
 *
 * An even number of ranks forms a ring. In round 1 the pairs (0,1), (2,3), ... swap their own
 * blocks. From then on, every rank alternates between its two neighbors, and passes on the two
 * blocks that it received last (in round 2: its pair's). An odd P cannot be paired, so the ring
 * algorithm is used.
 *
 *   round 1               round 2                     P = 4, numbers = blocks sent
 *   0 -0-> 1  1 -1-> 0    0 -01-> 3  3 -23-> 0
 *   2 -2-> 3  3 -3-> 2    1 -01-> 2  2 -23-> 1
 *
 * Rounds:   P // 2 if P % 2 == 0 else P - 1
 * Messages: P * (P // 2) if P % 2 == 0 else P * (P - 1)
 * Bytes:    P * (P - 1) * m
 * Cost: (P/2) α + (P-1)mβ for even P: half the start-ups of the ring, still between neighbors only.
 * Source: Chen, Zhang, Zhang, Yuan (2005), "Performance evaluation of allgather algorithms on
 * terascale Linux cluster with Fast Ethernet".
 */
#include "mpilab.h"

/* Swap two-block pairs with a neighbor; pair q is the blocks 2q and 2q+1. */
static int swap_pairs(void *recvbuf, int count, MPI_Datatype type, int outgoing, int incoming,
                      int neighbor, MPI_Comm comm)
{
    MPI_Datatype pair;
    int err = wrapped_run_type(0, 2, 2, count, type, &pair);
    if (err == MPI_SUCCESS) {
        err = MPI_Sendrecv(block(recvbuf, 2 * outgoing, count, type), 1, pair, neighbor, TAG,
                           block(recvbuf, 2 * incoming, count, type), 1, pair, neighbor, TAG, comm,
                           MPI_STATUS_IGNORE);
        MPI_Type_free(&pair);
    }
    return err;
}

int allgather_neighbor_exchange(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    if (size % 2 == 1)
        return allgather_ring(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);

    const int even = rank % 2 == 0;
    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;
    const int pairs = size / 2;
    const int twin = even ? right : left;
    const int stranger = even ? left : right;

    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    if (err == MPI_SUCCESS)
        err = MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, twin,
                           TAG, block(recvbuf, twin, recvcount, recvtype), recvcount, recvtype,
                           twin, TAG, comm, MPI_STATUS_IGNORE);

    /* Pairs arrive from both sides in turn: from the stranger's side 1, 2, 3, ... places away in
     * its direction, from the twin's side as many in the other one. */
    const int toward_stranger = even ? pairs - 1 : 1;
    const int toward_twin = pairs - toward_stranger;
    int near = rank / 2, far = rank / 2;
    int latest = rank / 2;
    for (int round = 2; round <= pairs && err == MPI_SUCCESS; round++) {
        const int with_stranger = round % 2 == 0;
        int incoming;
        if (with_stranger)
            incoming = far = (far + toward_stranger) % pairs;
        else
            incoming = near = (near + toward_twin) % pairs;
        err = swap_pairs(recvbuf, recvcount, recvtype, latest, incoming,
                         with_stranger ? stranger : twin, comm);
        latest = incoming;
    }
    return err;
}
