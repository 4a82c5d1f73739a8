/* Broadcast through shared memory.
 *
 * The root writes the message into its slots, segment by segment, and all others copy each segment
 * as soon as it is there, while the root writes the next one.
 *
 * Rounds:   0
 * Messages: 0
 * Bytes:    0
 * Cost: m/S bytes are copied S + 1 times, one after the other, with S segments; no rank waits for
 * another's MPI. On several nodes it is MPI_Bcast.
 * Source: as in memory.h.
 */
#include "memory.h"
#include <string.h>

MPILAB_BCAST(shared)
{
    struct mpilab_shared shared;
    struct mpilab_stream message;
    int err = mpilab_shared_of(comm, &shared);
    if (err == MPI_SUCCESS && shared.size == 0)
        return MPI_Bcast(buffer, count, datatype, root, comm);
    const int is_root = shared.rank == root;
    if (err == MPI_SUCCESS)
        err = mpilab_open_stream(buffer, count, datatype, is_root, &message);
    if (err != MPI_SUCCESS)
        return err;

    for (MPI_Aint at = 0; at < message.length; at += MPILAB_SLOT_BYTES) {
        const size_t bytes = mpilab_segment(message.length, at);
        if (is_root) {
            memcpy(mpilab_own_slot(&shared), message.bytes + at, bytes);
            mpilab_publish(&shared);
        } else
            memcpy(message.bytes + at, mpilab_slot_of(&shared, root), bytes);
        mpilab_end_step(&shared);
    }
    return mpilab_close_stream(&message, !is_root);
}
