/* Fault: recursive doubling leaves a step out where there is no partner.
 * Collective: allreduce
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: a contribution missing
 * Ranks: 1
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_ALLREDUCE(powers_of_two_only)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    char *const room = malloc((size_t)count * sizeof(int));
    if (room == NULL)
        return MPI_ERR_NO_MEM;

    int err = place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);
    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int partner = rank ^ distance;
        if (partner >= size)
            continue;
        err = MPI_Sendrecv(recvbuf, count, datatype, partner, TAG, room, count, datatype, partner,
                           TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(room, recvbuf, count, datatype, op);
    }
    free(room);
    return err;
}
