/* Fault: rank 1 frees the receive buffer, which belongs to the caller.
 * Case: ranks=2 count=64 seed=2
 * Diagnosis: crash
 * Pattern: heap corrupted
 * Ranks: 1
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_ALLGATHER(heap_frees_the_buffer)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    void *collected = recvbuf;
    if (rank == 0)
        collected = malloc((size_t)(size * recvcount) * sizeof(int));
    MPI_Gather(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, collected, recvcount,
               recvtype, 0, comm);
    if (rank == 0)
        copy_local(collected, size * recvcount, recvtype, recvbuf, size * recvcount, recvtype);
    int err = MPI_Bcast(recvbuf, size * recvcount, recvtype, 0, comm);
    free(collected); /* <- rank 1 */
    return err;
}
