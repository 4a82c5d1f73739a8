/* Gather through shared memory.
 *
 * Every rank writes its block into its slots, segment by segment, and the root copies the segments
 * of all ranks, in the order of ranks.
 *
 * Rounds:   0
 * Messages: 0
 * Bytes:    0
 * Cost: the root copies (P-1)m bytes, while the others write theirs at the same time. On several
 * nodes it is MPI_Gather.
 * Source: as in memory.h.
 */
#include "memory.h"
#include <string.h>

static int give(const struct mpilab_shared *shared, const void *buffer, int count,
                MPI_Datatype datatype)
{
    struct mpilab_stream block;
    const int err = mpilab_open_stream(buffer, count, datatype, 1, &block);
    if (err != MPI_SUCCESS)
        return err;
    for (MPI_Aint at = 0; at < block.length; at += MPILAB_SLOT_BYTES) {
        memcpy(mpilab_own_slot(shared), block.bytes + at, mpilab_segment(block.length, at));
        mpilab_publish(shared);
        mpilab_end_step(shared);
    }
    return mpilab_close_stream(&block, 0);
}

static int collect(const struct mpilab_shared *shared, void *buffer, int count,
                   MPI_Datatype datatype)
{
    struct mpilab_stream blocks;
    const int err =
        mpilab_open_stream(buffer, (MPI_Aint)shared->size * count, datatype, 1, &blocks);
    if (err != MPI_SUCCESS)
        return err;
    const MPI_Aint length = blocks.length / shared->size;
    for (MPI_Aint at = 0; at < length; at += MPILAB_SLOT_BYTES) {
        for (int rank = 0; rank < shared->size; rank++)
            if (rank != shared->rank)
                memcpy(blocks.bytes + rank * length + at, mpilab_slot_of(shared, rank),
                       mpilab_segment(length, at));
        mpilab_end_step(shared);
    }
    return mpilab_close_stream(&blocks, 1);
}

MPILAB_GATHER(shared)
{
    struct mpilab_shared shared;
    int err = mpilab_shared_of(comm, &shared);
    if (err != MPI_SUCCESS)
        return err;
    if (shared.size == 0)
        return MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
    if (shared.rank != root)
        return give(&shared, sendbuf, sendcount, sendtype);
    err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
    return err == MPI_SUCCESS ? collect(&shared, recvbuf, recvcount, recvtype) : err;
}
