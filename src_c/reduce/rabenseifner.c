/* Rabenseifner's reduce: reduce-scatter by recursive halving, then a binomial gather.
 *
 * In each step of the first part, ranks swap halves of what they have, and reduce the half that
 * they keep: in the end each has one block of the result. Then the blocks are gathered. This needs
 * a power of two: let C be the largest one not above P; beforehand, each rank from C upward sends
 * its data to rank - C.
 *
 *   round 1                round 2               round 3             round 4         P = 4, root 0,
 *   0 -cd-> 2  2 -ab-> 0   0 -b-> 1  1 -a-> 0    1 -b-> 0  3 -d-> 2  2 -cd-> 0       blocks a to d
 *   1 -cd-> 3  3 -ab-> 1   2 -d-> 3  3 -c-> 2
 *
 * Rounds:   2 * floor_log2(P) + (0 if P == 2 ** floor_log2(P) else 1)
 * Messages: P - 1 + 2 ** floor_log2(P) * floor_log2(P)
 * Bytes:    (P - 1) * m + binomial_hops(2 ** floor_log2(P), n) * e
 *           with n elements of e bytes: binomial_hops(C, n) is how many elements the gather moves
 * Cost: 2 log2(P) α + 2 (P-1)/P mβ + (P-1)/P mγ for a power of two, with γ per byte reduced; for
 * other P, α + mβ + mγ more: best for long messages. Operations that do not commute are left to the
 * in-order binary tree.
 * Source: Rabenseifner (2004); Thakur, Rabenseifner, Gropp (2005), section 4.4.
 */
#include "../common/tree/blocks.h"
#include <stdlib.h>

/* Block v is at virtual rank v < core: collect them all on virtual rank 0. */
static int gather_blocks(void *result, int count, MPI_Datatype datatype, int core, int root,
                         MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;

    int err = MPI_SUCCESS;
    for (int distance = 1; virtual_rank < core && distance < core && err == MPI_SUCCESS;
         distance *= 2) {
        const int first = virtual_rank | distance; /* of the blocks that move now */
        const struct mpilab_window moved = mpilab_window(first, first + distance - 1, core, count);
        void *const blocks = block(result, moved.begin, 1, datatype);
        if (virtual_rank & distance)
            return MPI_Send(blocks, moved.length, datatype, (first - distance + root) % size, TAG,
                            comm);
        err = MPI_Recv(blocks, moved.length, datatype, (first + root) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    }
    return err;
}

MPILAB_REDUCE(rabenseifner)
{
    int commutes, rank, size;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    struct mpilab_room room = {NULL, NULL};
    int err = rank == root ? MPI_SUCCESS : mpilab_make_room(1, count, datatype, &room);
    void *result = rank == root ? recvbuf : room.origin;
    if (err == MPI_SUCCESS)
        err = mpilab_reduce_blocks(sendbuf, result, count, datatype, op, root, comm);
    if (err == MPI_SUCCESS)
        err = gather_blocks(result, count, datatype, mpilab_power_of_two(size), root, comm);
    free(room.memory);
    return err;
}
