/* Fault: sums that go round overlap if the ranks are not a power of two.
 * Collective: allreduce
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: a contribution counted twice
 * Ranks: 0 1 2
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_ALLREDUCE(dissemination_overlaps)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    char *const room = malloc((size_t)count * sizeof(int));
    if (room == NULL)
        return MPI_ERR_NO_MEM;

    int err = place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);
    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (rank + distance) % size, source = (rank - distance + size) % size;
        err = MPI_Sendrecv(recvbuf, count, datatype, dest, TAG, room, count, datatype, source, TAG,
                           comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(room, recvbuf, count, datatype, op);
    }
    free(room);
    return err;
}
