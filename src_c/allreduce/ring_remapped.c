/* Ring allreduce, remapped: the ring goes from node to node, regardless of the processes' ranks.
 *
 * Processes behave as other ranks of the ring (common/remap/remap.h), so that those of a node are
 * consecutive. The message is cut into blocks by places in the ring, and every rank ends with all
 * of them: no data has to move, so remapping costs nothing.
 *
 *   node          |  n1   |  n2   |        placed in turn (RR), 2 nodes of 2 processes; blocks a to d
 *   process       | 0   2 | 1   3 |
 *   behaves as    | 0   1 | 2   3 |
 *
 *   round 1   round 2    round 3     round 4   round 5   round 6     a' has two parts, a" three,
 *   0 -a-> 2  0 -d'-> 2  0 -c"-> 2   0 -B-> 2  0 -A-> 2  0 -D-> 2    A is the result; 2 -> 1 and
 *   2 -b-> 1  2 -a'-> 1  2 -d"-> 1   2 -C-> 1  2 -B-> 1  2 -A-> 1    3 -> 0 are between nodes
 *   1 -c-> 3  1 -b'-> 3  1 -a"-> 3   1 -D-> 3  1 -C-> 3  1 -B-> 3
 *   3 -d-> 0  3 -c'-> 0  3 -b"-> 0   3 -A-> 0  3 -D-> 0  3 -C-> 0
 *
 * Tunables: remap (default: by group, node and rank)
 * Rounds:   2 * (P - 1)
 * Messages: 2 * P * (P - 1)
 * Bytes:    2 * (P - 1) * m
 * Cost: 2 (P-1) α + 2 (P-1)/P mβ + (P-1)/P mγ with γ per byte reduced. From each of M > 1 nodes
 * about 2 (P-1)/P m bytes are sent to another one; in RR order the plain ring sends all bytes
 * between nodes. The order of additions depends on the placement: sums of floating-point numbers
 * may differ in their last digits from run to run, but not from rank to rank. Operations that do
 * not commute are left to plain recursive doubling.
 * Source: Álvarez, Díaz, Rico (2017), "Formal modeling and performance evaluation of a run-time
 * rank remapping technique ..."; the ring as in Patarasuk, Yuan (2009).
 */
#include "../common/remap/remap.h"
#include "../common/tree/blocks.h"
#include <stdlib.h>

/* Twice round the ring: in the first P-1 rounds what comes is a part of a block, and our own part is
 * taken in; in the others it is a block of the result. If our own part lies where the result will be
 * (`own` is `recvbuf`), the other one comes to `spare` first. */
static int go_round(const void *own, void *recvbuf, void *spare, int count, MPI_Datatype datatype,
                    MPI_Op op, const struct mpilab_members *roles, MPI_Comm comm)
{
    const int self = roles->self, size = roles->size;
    const int right = roles->rank[(self + 1) % size];
    const int left = roles->rank[(self + size - 1) % size];
    int err = MPI_SUCCESS;
    for (int round = 1; round <= 2 * (size - 1) && err == MPI_SUCCESS; round++) {
        const int is_part = round < size;
        const int outgoing = (self - round + 1 + 2 * size) % size;
        const int incoming = (self - round + 2 * size) % size;
        const struct mpilab_window out = mpilab_window(outgoing, outgoing, size, count);
        const struct mpilab_window in = mpilab_window(incoming, incoming, size, count);
        void *result = block(recvbuf, in.begin, 1, datatype);
        void *message = is_part && own == recvbuf ? spare : result;
        err = MPI_Sendrecv(block(round == 1 ? own : recvbuf, out.begin, 1, datatype), out.length,
                           datatype, right, TAG, message, in.length, datatype, left, TAG, comm,
                           MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS && is_part)
            err = MPI_Reduce_local(own == recvbuf ? spare : block(own, in.begin, 1, datatype),
                                   result, in.length, datatype, op);
    }
    return err;
}

MPILAB_ALLREDUCE(ring_remapped)
{
    int commutes, size;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return allreduce_recursive_doubling(sendbuf, recvbuf, count, datatype, op, comm);
    MPI_Comm_size(comm, &size);
    if (size == 1)
        return place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);

    const struct mpilab_members *roles;
    const void *own = sendbuf;
    struct mpilab_room spare = {NULL, NULL};
    int err = mpilab_roles_of(comm, MPILAB_NEIGHBORS, &roles);
    if (err == MPI_SUCCESS && sendbuf == MPI_IN_PLACE) {
        own = recvbuf;
        err = mpilab_make_room(1, count / size + 1, datatype, &spare);
    }
    if (err == MPI_SUCCESS)
        err = go_round(own, recvbuf, spare.origin, count, datatype, op, roles, comm);
    free(spare.memory);
    return err;
}
