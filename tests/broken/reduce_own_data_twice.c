/* Fault: the root's own data are in recvbuf already, and added once more.
 * Collective: reduce
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: a contribution counted twice
 * Ranks: 0
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_REDUCE(own_data_twice)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Send(sendbuf, count, datatype, root, TAG, comm);

    char *const room = malloc((size_t)count * sizeof(int));
    if (room == NULL)
        return MPI_ERR_NO_MEM;
    int err = place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);
    for (int i = 1; i < size && err == MPI_SUCCESS; i++) {
        err = MPI_Recv(room, count, datatype, (root + i) % size, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(room, recvbuf, count, datatype, op);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Reduce_local(sendbuf, recvbuf, count, datatype, op);
    free(room);
    return err;
}
