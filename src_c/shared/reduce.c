/* Reduce through shared memory.
 *
 * Every rank writes its data into its slots, segment by segment, and the root combines the segments
 * of all ranks, in their order.
 *
 * Rounds:   0
 * Messages: 0
 * Bytes:    0
 * Cost: the root reduces (P-1)m bytes, while the others write theirs at the same time. On several
 * nodes, or with a datatype that has holes, it is MPI_Reduce.
 * Source: as in memory.h.
 */
#include "memory.h"
#include <string.h>

MPILAB_REDUCE(shared)
{
    struct mpilab_shared shared;
    int size;
    int err = mpilab_shared_for_reduction(comm, datatype, &shared, &size);
    if (err != MPI_SUCCESS)
        return err;
    if (shared.size == 0)
        return MPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm);

    /* The root's own data in its receive buffer would be overwritten by that of higher ranks. */
    const int in_place = sendbuf == MPI_IN_PLACE && shared.rank == root;
    const int through_slot = shared.rank != root || (in_place && root < shared.size - 1);
    const char *const own = in_place ? recvbuf : sendbuf;
    const int most = MPILAB_SLOT_BYTES / size;
    for (int at = 0; at < count && err == MPI_SUCCESS; at += most) {
        const int elements = count - at < most ? count - at : most;
        const void *part = own + (size_t)at * (size_t)size;
        if (through_slot)
            part = memcpy(mpilab_own_slot(&shared), part, (size_t)elements * (size_t)size);
        if (shared.rank == root)
            err = mpilab_combine(&shared, part, (char *)recvbuf + (size_t)at * (size_t)size,
                                 elements, datatype, op);
        else
            mpilab_publish(&shared);
        mpilab_end_step(&shared);
    }
    return err;
}
