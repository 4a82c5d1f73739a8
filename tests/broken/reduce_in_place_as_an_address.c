/* Fault: MPI_IN_PLACE is taken for the address of a buffer.
 * Collective: reduce
 * Case: ranks=2 count=4 in_place
 * Diagnosis: crash
 * Pattern: MPI_IN_PLACE used as an address
 * Ranks: 0
 */
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>

MPILAB_REDUCE(in_place_as_an_address)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Send(sendbuf, count, datatype, root, TAG, comm);

    char *const room = malloc((size_t)count * sizeof(int));
    if (room == NULL)
        return MPI_ERR_NO_MEM;
    int bytes, err = MPI_SUCCESS;
    MPI_Type_size(datatype, &bytes);
    memcpy(recvbuf, sendbuf, (size_t)count * (size_t)bytes); /* <- rank 0 */
    for (int i = 1; i < size && err == MPI_SUCCESS; i++) {
        err = MPI_Recv(room, count, datatype, (root + i) % size, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(room, recvbuf, count, datatype, op);
    }
    free(room);
    return err;
}
