/* Fault: a ring passes on the sum so far, not what came in last.
 * Collective: allreduce
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: a contribution counted twice
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_ALLREDUCE(ring_passes_the_sum)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    char *const room = malloc((size_t)count * sizeof(int));
    if (room == NULL)
        return MPI_ERR_NO_MEM;

    int err = place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);
    const int right = (rank + 1) % size, left = (rank - 1 + size) % size;
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        err = MPI_Sendrecv(recvbuf, count, datatype, right, TAG, room, count, datatype, left, TAG,
                           comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(room, recvbuf, count, datatype, op);
    }
    free(room);
    return err;
}
