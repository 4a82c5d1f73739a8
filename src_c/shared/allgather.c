/* Allgather through shared memory.
 *
 * Every rank writes its block into its slots, segment by segment, and copies the segments of all
 * others, beginning with its right neighbor's, so that not all read the same slot at once.
 *
 * Rounds:   0
 * Messages: 0
 * Bytes:    0
 * Cost: each rank copies m bytes into its slots, and (P-1)m bytes from those of others. On several
 * nodes it is MPI_Allgather.
 * Source: as in memory.h.
 */
#include "memory.h"
#include <string.h>

MPILAB_ALLGATHER(shared)
{
    struct mpilab_shared shared;
    struct mpilab_stream blocks;
    int err = mpilab_shared_of(comm, &shared);
    if (err == MPI_SUCCESS && shared.size == 0)
        return MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    if (err == MPI_SUCCESS)
        err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                              shared.rank);
    if (err == MPI_SUCCESS)
        err = mpilab_open_stream(recvbuf, (MPI_Aint)shared.size * recvcount, recvtype, 1, &blocks);
    if (err != MPI_SUCCESS)
        return err;

    const MPI_Aint length = blocks.length / shared.size;
    for (MPI_Aint at = 0; at < length; at += MPILAB_SLOT_BYTES) {
        const size_t bytes = mpilab_segment(length, at);
        memcpy(mpilab_own_slot(&shared), blocks.bytes + shared.rank * length + at, bytes);
        mpilab_publish(&shared);
        for (int i = 1; i < shared.size; i++) {
            const int rank = (shared.rank + i) % shared.size;
            memcpy(blocks.bytes + rank * length + at, mpilab_slot_of(&shared, rank), bytes);
        }
        mpilab_end_step(&shared);
    }
    return mpilab_close_stream(&blocks, 1);
}
