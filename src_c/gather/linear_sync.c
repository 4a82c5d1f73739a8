/* Linear gather with synchronization.
 *
 * The root lets the ranks send one after another, and tells each how many bytes to send first. It
 * lets the next rank send as soon as these have arrived; the rest of the block follows meanwhile.
 *
 *   rounds 1, 2              rounds 3, 4              5        P = 3, root 0, blocks a1 a2, b1 b2
 *   0 -go-> 1   1 -a1-> 0    1 -a2-> 0
 *                            0 -go-> 2   2 -b1-> 0    2 -b2-> 0
 *
 * Tunables: segment_bytes (size of the first part; S = ⌈m / segment⌉; default 1 KiB)
 * Rounds:   2 * (P - 1) + (1 if S > 1 else 0) if P > 1 else 0
 * Messages: (P - 1) * (1 + min(S, 2))
 * Bytes:    (P - 1) * (m + 8)
 * Cost: (P-1)(2α + mβ), if the rest arrives while the root waits for others: twice the start-ups of
 * the linear gather, but the root is never flooded by all ranks at once.
 * Source: Open MPI 5, coll/base, "linear_sync" (whose go-ahead is empty; ours tells the size of the
 * first part, so that it ends between two elements of the root's datatype).
 */
#include "mpilab.h"
#include <stdlib.h>

enum { FIRST_BYTES = 1024 };

/* How many bytes of `count` elements to send first: whole elements, and at least one. */
static long long bytes_at_once(int count, MPI_Datatype type)
{
    const long long segment =
        mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : FIRST_BYTES;
    int type_bytes;
    MPI_Type_size(type, &type_bytes);
    const long long block_bytes = (long long)count * type_bytes;
    if (type_bytes == 0 || block_bytes <= segment)
        return block_bytes;
    return segment < type_bytes ? type_bytes : segment / type_bytes * type_bytes;
}

/* Receive the first part of a block, and start to receive the rest if there is any. */
static int receive_block(void *where, int count, MPI_Datatype type, int source, MPI_Comm comm,
                         MPI_Request *rest)
{
    const long long at_once = bytes_at_once(count, type);
    MPI_Request first;
    MPI_Status status;
    int err = MPI_Irecv(where, count, type, source, TAG, comm, &first);
    if (err == MPI_SUCCESS)
        err = MPI_Send(&at_once, 1, MPI_LONG_LONG, source, TAG, comm);
    if (err == MPI_SUCCESS)
        err = MPI_Wait(&first, &status);

    int received = count;
    if (err == MPI_SUCCESS && at_once > 0)
        MPI_Get_count(&status, type, &received);
    *rest = MPI_REQUEST_NULL;
    if (err == MPI_SUCCESS && received < count)
        err = MPI_Irecv(block(where, received, 1, type), count - received, type, source, TAG, comm,
                        rest);
    return err;
}

static int send_block(const void *where, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    long long at_once;
    int err = MPI_Recv(&at_once, 1, MPI_LONG_LONG, root, TAG, comm, MPI_STATUS_IGNORE);
    int type_bytes;
    MPI_Type_size(type, &type_bytes);
    /* A block that cannot be cut there goes as a whole: the root is prepared for that. */
    const int can_be_cut = type_bytes > 0 && at_once % type_bytes == 0;
    const int first = can_be_cut ? (int)(at_once / type_bytes) : count;
    if (err == MPI_SUCCESS)
        err = MPI_Send(where, first, type, root, TAG, comm);
    if (err == MPI_SUCCESS && first < count)
        err = MPI_Send(block(where, first, 1, type), count - first, type, root, TAG, comm);
    return err;
}

MPILAB_GATHER(linear_sync)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return send_block(sendbuf, sendcount, sendtype, root, comm);

    MPI_Request *rests = malloc((size_t)size * sizeof *rests);
    if (rests == NULL)
        return MPI_ERR_NO_MEM;
    rests[root] = MPI_REQUEST_NULL;
    int err = MPI_SUCCESS;
    for (int source = 0; source < size && err == MPI_SUCCESS; source++)
        if (source != root)
            err = receive_block(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype,
                                source, comm, &rests[source]);
    if (err == MPI_SUCCESS)
        err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(size, rests, MPI_STATUSES_IGNORE);
    free(rests);
    return err;
}
