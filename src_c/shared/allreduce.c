/* Allreduce through shared memory.
 *
 * Every rank writes its data into its slots, segment by segment, and combines the segments of all
 * ranks, in their order: so all of them get the same result.
 *
 * Rounds:   0
 * Messages: 0
 * Bytes:    0
 * Cost: each rank reduces (P-1)m bytes: for few ranks. On several nodes, or with a datatype that has
 * holes, it is MPI_Allreduce.
 * Source: as in memory.h.
 */
#include "memory.h"
#include <string.h>

MPILAB_ALLREDUCE(shared)
{
    struct mpilab_shared shared;
    int size;
    int err = mpilab_shared_for_reduction(comm, datatype, &shared, &size);
    if (err != MPI_SUCCESS)
        return err;
    if (shared.size == 0)
        return MPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);

    const char *const own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    const int most = MPILAB_SLOT_BYTES / size;
    for (int at = 0; at < count && err == MPI_SUCCESS; at += most) {
        const int elements = count - at < most ? count - at : most;
        const size_t begin = (size_t)at * (size_t)size;
        const void *const part =
            memcpy(mpilab_own_slot(&shared), own + begin, (size_t)elements * (size_t)size);
        mpilab_publish(&shared);
        err = mpilab_combine(&shared, part, (char *)recvbuf + begin, elements, datatype, op);
        mpilab_end_step(&shared);
    }
    return err;
}
