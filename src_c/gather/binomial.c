/* Binomial gather.
 *
 * Each rank of a binomial tree collects the blocks of all ranks under it, and sends them up in one
 * message together with its own. Ranks are counted from the root, so a rank collects the blocks
 * that follow its own; in the root's buffer they may continue at block 0 (mpilab_irecv_run).
 *
 *   round 1                                    round 2                  round 3         P = 8,
 *   1 -1-> 0   3 -3-> 2   5 -5-> 4   7 -7-> 6  2 -23-> 0   6 -67-> 4    4 -4567-> 0     root 0
 *
 * Rounds:   floor_log2(P)
 * Messages: P - 1
 * Bytes:    binomial_hops(P, P) * m
 *           where each of P blocks moves as often as its rank is deep in the tree
 * Cost: ⌈log2 P⌉ α + (P-1)mβ at the root, and a copy of every forwarded block: best for short
 * blocks and many ranks. A block goes through up to log2(P) ranks.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4; Open MPI 5, coll/base, "binomial".
 */
#include "../common/tree/blocks.h"
#include <stdlib.h>

enum { MOST_CHILDREN = 32 };

/* Begin to receive what all children collect into `buffer`, a ring of `blocks` blocks with our own
 * at `own`. */
static int start_receiving(void *buffer, int own, int blocks, int virtual_rank, int count,
                           MPI_Datatype type, int root, MPI_Comm comm,
                           MPI_Request requests[MOST_CHILDREN], int *started)
{
    int size, err = MPI_SUCCESS;
    MPI_Comm_size(comm, &size);
    const int subtree = mpilab_binomial_subtree(virtual_rank, size);
    mpilab_no_requests(MOST_CHILDREN, requests);
    *started = 0;
    for (long long distance = 1; distance < subtree && err == MPI_SUCCESS; distance *= 2) {
        const int child = virtual_rank + (int)distance;
        err = mpilab_irecv_run(buffer, (own + (int)distance) % blocks,
                               mpilab_binomial_subtree(child, size), blocks, count, type,
                               (child + root) % size, comm, &requests[(*started)++]);
    }
    return err;
}

static int at_root(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, int root, int size, MPI_Comm comm)
{
    MPI_Request requests[MOST_CHILDREN];
    int started = 0;
    int err = start_receiving(recvbuf, root, size, 0, recvcount, recvtype, root, comm, requests,
                              &started);
    if (err == MPI_SUCCESS)
        err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        mpilab_abandon(started, requests);
    return err;
}

/* Only the root knows the receive type: in transit, blocks have the layout of this rank's own
 * block. */
static int in_between(const void *sendbuf, int count, MPI_Datatype type, int virtual_rank,
                      int parent, int root, int size, MPI_Comm comm)
{
    const int subtree = mpilab_binomial_subtree(virtual_rank, size);
    struct mpilab_room room;
    MPI_Request requests[MOST_CHILDREN];
    int started = 0;
    int err = mpilab_make_room(subtree, count, type, &room);
    if (err == MPI_SUCCESS)
        err = start_receiving(room.origin, 0, subtree, virtual_rank, count, type, root, comm,
                              requests, &started);
    if (err == MPI_SUCCESS)
        err = copy_local(sendbuf, count, type, room.origin, count, type);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        mpilab_abandon(started, requests);
    else
        err = mpilab_send_run(room.origin, 0, subtree, subtree, count, type, parent, comm);
    free(room.memory);
    return err;
}

MPILAB_GATHER(binomial)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;
    const int lowest_bit = virtual_rank & -virtual_rank;
    const int parent = (virtual_rank - lowest_bit + root) % size;

    if (virtual_rank == 0)
        return at_root(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, size,
                       comm);
    if (mpilab_binomial_subtree(virtual_rank, size) == 1)
        return MPI_Send(sendbuf, sendcount, sendtype, parent, TAG, comm);
    return in_between(sendbuf, sendcount, sendtype, virtual_rank, parent, root, size, comm);
}
