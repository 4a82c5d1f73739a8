/* Neighbor exchange allgather, remapped: neighbors are on the same node where possible.
 *
 * Processes behave as other ranks of the plain algorithm (common/remap/remap.h), so that those of a
 * node follow each other in its ring. Blocks are stored by the rank that they come from: the two of
 * a pair need not be adjacent there, so a datatype describes them. Remapping costs nothing else.
 *
 *   node          |  n1   |  n2   |        placed in turn (RR), 2 nodes of 2 processes
 *   process       | 0   2 | 1   3 |
 *   behaves as    | 0   1 | 2   3 |
 *
 *   round 1               round 2                     numbers = blocks sent; round 1 is within
 *   0 -0-> 2  2 -2-> 0    0 -02-> 3  3 -13-> 0        nodes, round 2 between them
 *   1 -1-> 3  3 -3-> 1    2 -02-> 1  1 -13-> 2
 *
 * Tunables: remap (default: by group, node and rank)
 * Rounds:   P // 2 if P % 2 == 0 else P - 1
 * Messages: P * (P // 2) if P % 2 == 0 else P * (P - 1)
 * Bytes:    P * (P - 1) * m
 * Cost: (P/2) α + (P-1)mβ for even P, like the plain algorithm in the best order. With an even
 * number of processes on each of M > 1 nodes, 4 M ⌊P/4⌋ m bytes are sent between nodes; in RR
 * order, the plain algorithm sends all P (P-1) m bytes between nodes. An odd P is left to the
 * remapped ring.
 * Source: Álvarez, Díaz, Rico (2017), "Formal modeling and performance evaluation of a run-time
 * rank remapping technique ..."; translated blocks instead of their first phase.
 */
#include "../common/remap/remap.h"

/* The datatype of pair q: the blocks of the processes that behave as 2q and 2q+1. */
static int pair_type(const int *process, int pair, int count, MPI_Datatype type, MPI_Datatype *made)
{
    return two_runs_type(process + 2 * pair, (int[]){1, 1}, count, type, made);
}

static int swap_pairs(void *recvbuf, int count, MPI_Datatype type, const int *process, int outgoing,
                      int incoming, int neighbor, MPI_Comm comm)
{
    MPI_Datatype theirs = MPI_DATATYPE_NULL, ours = MPI_DATATYPE_NULL;
    int err = pair_type(process, outgoing, count, type, &ours);
    if (err == MPI_SUCCESS)
        err = pair_type(process, incoming, count, type, &theirs);
    if (err == MPI_SUCCESS)
        err = MPI_Sendrecv(recvbuf, 1, ours, neighbor, TAG, recvbuf, 1, theirs, neighbor, TAG, comm,
                           MPI_STATUS_IGNORE);
    if (ours != MPI_DATATYPE_NULL)
        MPI_Type_free(&ours);
    if (theirs != MPI_DATATYPE_NULL)
        MPI_Type_free(&theirs);
    return err;
}

MPILAB_ALLGATHER(neighbor_exchange_remapped)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size % 2 == 1)
        return allgather_ring_remapped(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                       comm);
    const struct mpilab_members *roles;
    int err = mpilab_roles_of(comm, MPILAB_NEIGHBORS, &roles);
    if (err != MPI_SUCCESS)
        return err;

    const int *const process = roles->rank;
    const int even = roles->self % 2 == 0;
    const int right = process[(roles->self + 1) % size];
    const int left = process[(roles->self + size - 1) % size];
    const int pairs = size / 2;
    const int twin = even ? right : left;
    const int stranger = even ? left : right;

    err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    if (err == MPI_SUCCESS)
        err = MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, twin,
                           TAG, block(recvbuf, twin, recvcount, recvtype), recvcount, recvtype,
                           twin, TAG, comm, MPI_STATUS_IGNORE);

    /* As in neighbor_exchange.c: pairs arrive from both sides in turn, and from each side those
     * that are 1, 2, 3, ... places away. */
    const int toward_stranger = even ? pairs - 1 : 1;
    const int toward_twin = pairs - toward_stranger;
    int near = roles->self / 2, far = near, latest = near;
    for (int round = 2; round <= pairs && err == MPI_SUCCESS; round++) {
        const int with_stranger = round % 2 == 0;
        int incoming;
        if (with_stranger)
            incoming = far = (far + toward_stranger) % pairs;
        else
            incoming = near = (near + toward_twin) % pairs;
        err = swap_pairs(recvbuf, recvcount, recvtype, process, latest, incoming,
                         with_stranger ? stranger : twin, comm);
        latest = incoming;
    }
    return err;
}
