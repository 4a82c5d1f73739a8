/* Ring allgather, remapped: the ring goes from node to node, regardless of the processes' ranks.
 *
 * Processes behave as other ranks of the ring (common/remap/remap.h), so that those of a node are
 * consecutive. A block circulates by its place in the ring, and is stored by the rank that it comes
 * from: no process needs another's data first, so remapping costs nothing.
 *
 *   node          |  n1   |  n2   |        placed in turn (RR), 2 nodes of 2 processes: each message
 *   process       | 0   2 | 1   3 |        of the plain ring 0 > 1 > 2 > 3 > 0 would leave a node
 *   behaves as    | 0   1 | 2   3 |
 *
 *   round 1        round 2        round 3            number = block sent
 *   0 -0-> 2       0 -3-> 2       0 -1-> 2
 *   2 -2-> 1       2 -0-> 1       2 -3-> 1           2 -> 1 and 3 -> 0 are between nodes
 *   1 -1-> 3       1 -2-> 3       1 -0-> 3
 *   3 -3-> 0       3 -1-> 0       3 -2-> 0
 *
 * Tunables: remap (default: by group, node and rank)
 * Rounds:   P - 1
 * Messages: P * (P - 1)
 * Bytes:    P * (P - 1) * m
 * Between nodes:  (0 if M == 1 else M) * (P - 1) * m
 * Between groups: (0 if G == 1 else G) * (P - 1) * m
 *           with the default remapping; no ring does with less
 * Cost: (P-1)(α + mβ) with m bytes a block, like the plain ring in the best order; in RR order, the
 * plain ring sends P (P-1) m between nodes.
 * Source: Álvarez, Díaz, Rico (2017), "Formal modeling and performance evaluation of a run-time
 * rank remapping technique ..."; translated blocks instead of their first phase.
 */
#include "../common/remap/remap.h"

MPILAB_ALLGATHER(ring_remapped)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const struct mpilab_members *roles;
    int err = mpilab_roles_of(comm, MPILAB_NEIGHBORS, &roles);
    if (err != MPI_SUCCESS)
        return err;

    const int *const process = roles->rank;
    const int right = process[(roles->self + 1) % size];
    const int left = process[(roles->self + size - 1) % size];

    err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int outgoing = process[(roles->self - round + 1 + size) % size];
        const int incoming = process[(roles->self - round + size) % size];
        err = MPI_Sendrecv(block(recvbuf, outgoing, recvcount, recvtype), recvcount, recvtype,
                           right, TAG, block(recvbuf, incoming, recvcount, recvtype), recvcount,
                           recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
