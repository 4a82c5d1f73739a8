/* Fault: a rank in between hands on from sendbuf, which only the root has.
 * Collective: scatter
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid buffer
 * Ranks: 1
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_SCATTER(sendbuf_of_the_others)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size, left = size - virtual_rank - 1;
    const int before = (rank - 1 + size) % size, after = (rank + 1) % size;

    char *const room = malloc((size_t)(left + 1) * (size_t)recvcount * sizeof(int));
    const void *from = virtual_rank == 0 ? block(sendbuf, 1, sendcount, sendtype) : sendbuf;
    int err = room == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (virtual_rank > 0 && err == MPI_SUCCESS)
        err =
            MPI_Recv(room, (left + 1) * recvcount, recvtype, before, TAG, comm, MPI_STATUS_IGNORE);
    if (left > 0 && err == MPI_SUCCESS)
        err = MPI_Send(from, left * recvcount, recvtype, after, TAG, comm); /* <- rank 1 */
    if (err == MPI_SUCCESS)
        err = copy_local(virtual_rank == 0 ? sendbuf : room, recvcount, recvtype, recvbuf,
                         recvcount, recvtype);
    free(room);
    return err;
}
