/* Scatter through shared memory.
 *
 * The root writes the blocks into its slots, segment by segment, in the order of ranks; each rank
 * copies its own.
 *
 * Rounds:   0
 * Messages: 0
 * Bytes:    0
 * Cost: the root copies (P-1)m bytes, while the others copy theirs at the same time. On several
 * nodes it is MPI_Scatter.
 * Source: as in memory.h.
 */
#include "memory.h"
#include <string.h>

static int hand_out(const struct mpilab_shared *shared, const void *buffer, int count,
                    MPI_Datatype datatype)
{
    struct mpilab_stream blocks;
    const int err =
        mpilab_open_stream(buffer, (MPI_Aint)shared->size * count, datatype, 1, &blocks);
    if (err != MPI_SUCCESS)
        return err;
    const MPI_Aint length = blocks.length / shared->size;
    for (int rank = 0; rank < shared->size; rank++)
        for (MPI_Aint at = 0; rank != shared->rank && at < length; at += MPILAB_SLOT_BYTES) {
            memcpy(mpilab_own_slot(shared), blocks.bytes + rank * length + at,
                   mpilab_segment(length, at));
            mpilab_publish(shared);
            mpilab_end_step(shared);
        }
    return mpilab_close_stream(&blocks, 0);
}

static int take(const struct mpilab_shared *shared, void *buffer, int count, MPI_Datatype datatype,
                int root)
{
    struct mpilab_stream block;
    const int err = mpilab_open_stream(buffer, count, datatype, 0, &block);
    if (err != MPI_SUCCESS)
        return err;
    for (int rank = 0; rank < shared->size; rank++)
        for (MPI_Aint at = 0; rank != root && at < block.length; at += MPILAB_SLOT_BYTES) {
            if (rank == shared->rank)
                memcpy(block.bytes + at, mpilab_slot_of(shared, root),
                       mpilab_segment(block.length, at));
            mpilab_end_step(shared);
        }
    return mpilab_close_stream(&block, 1);
}

MPILAB_SCATTER(shared)
{
    struct mpilab_shared shared;
    int err = mpilab_shared_of(comm, &shared);
    if (err != MPI_SUCCESS)
        return err;
    if (shared.size == 0)
        return MPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    if (shared.rank != root)
        return take(&shared, recvbuf, recvcount, recvtype, root);
    err = take_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
    return err == MPI_SUCCESS ? hand_out(&shared, sendbuf, sendcount, sendtype) : err;
}
