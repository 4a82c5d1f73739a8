/* Binomial scatter.
 *
 * Each rank of a binomial tree gets, in one message, the blocks of all ranks under it and its own,
 * and sends them on, the largest part first. Ranks are counted from the root, so a rank gets its
 * own block and those that follow; in the root's buffer they may continue at block 0
 * (mpilab_send_run).
 *
 *   round 1          round 2                    round 3                          P = 8, root 0
 *   0 -4567-> 4      0 -23-> 2   4 -67-> 6      0 -1-> 1   2 -3-> 3   4 -5-> 5   6 -7-> 7
 *
 * Rounds:   ceil_log2(P)
 * Messages: P - 1
 * Bytes:    binomial_hops(P, P) * m
 *           where each of P blocks moves as often as its rank is deep in the tree
 * Cost: ⌈log2 P⌉ α + (P-1)mβ at the root, and a copy within each inner rank: best for short blocks
 * and many ranks.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4; Open MPI 5, coll/base, "binomial".
 */
#include "../common/tree/blocks.h"
#include <stdlib.h>

/* `buffer` is a ring of `blocks` blocks, with this rank's own at `own`. */
static int send_to_children(const void *buffer, int own, int blocks, int virtual_rank, int count,
                            MPI_Datatype type, int root, int size, MPI_Comm comm)
{
    const int subtree = mpilab_binomial_subtree(virtual_rank, size);
    int err = MPI_SUCCESS;
    for (int distance = mpilab_power_of_two(subtree); distance >= 1 && err == MPI_SUCCESS;
         distance /= 2) {
        if (distance >= subtree)
            continue;
        const int child = virtual_rank + distance;
        err =
            mpilab_send_run(buffer, (own + distance) % blocks, mpilab_binomial_subtree(child, size),
                            blocks, count, type, (child + root) % size, comm);
    }
    return err;
}

/* Only the root knows the send type: in transit, blocks have the layout of this rank's own
 * block. */
static int in_between(void *recvbuf, int count, MPI_Datatype type, int virtual_rank, int parent,
                      int root, int size, MPI_Comm comm)
{
    const int subtree = mpilab_binomial_subtree(virtual_rank, size);
    struct mpilab_room room;
    MPI_Request request;
    int err = mpilab_make_room(subtree, count, type, &room);
    if (err == MPI_SUCCESS)
        err =
            mpilab_irecv_run(room.origin, 0, subtree, subtree, count, type, parent, comm, &request);
    if (err == MPI_SUCCESS)
        err = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err =
            send_to_children(room.origin, 0, subtree, virtual_rank, count, type, root, size, comm);
    if (err == MPI_SUCCESS)
        err = copy_local(room.origin, count, type, recvbuf, count, type);
    free(room.memory);
    return err;
}

MPILAB_SCATTER(binomial)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;
    const int lowest_bit = virtual_rank & -virtual_rank;
    const int parent = (virtual_rank - lowest_bit + root) % size;

    if (virtual_rank == 0) {
        int err = send_to_children(sendbuf, root, size, 0, sendcount, sendtype, root, size, comm);
        if (err == MPI_SUCCESS)
            err = take_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
        return err;
    }
    if (mpilab_binomial_subtree(virtual_rank, size) == 1)
        return MPI_Recv(recvbuf, recvcount, recvtype, parent, TAG, comm, MPI_STATUS_IGNORE);
    return in_between(recvbuf, recvcount, recvtype, virtual_rank, parent, root, size, comm);
}
