/* Barrier through shared memory.
 *
 * Every rank publishes that it has entered, and looks at all others.
 *
 * Rounds:   0
 * Messages: 0
 * Bytes:    0
 * Cost: a cache line from each rank to each other rank. On several nodes it is
 * MPI_Barrier.
 * Source: as in memory.h.
 */
#include "memory.h"

MPILAB_BARRIER(shared)
{
    struct mpilab_shared shared;
    const int err = mpilab_shared_of(comm, &shared);
    if (err != MPI_SUCCESS)
        return err;
    if (shared.size == 0)
        return MPI_Barrier(comm);
    mpilab_publish(&shared);
    for (int rank = 0; rank < shared.size; rank++)
        mpilab_slot_of(&shared, rank);
    mpilab_end_step(&shared);
    return MPI_SUCCESS;
}
