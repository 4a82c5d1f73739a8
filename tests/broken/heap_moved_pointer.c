/* Fault: the pointer that is given to free is no longer the one that came from malloc.
 * Case: ranks=2 count=64
 * Diagnosis: crash
 * Pattern: heap corrupted
 * Ranks: any
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_ALLGATHER(heap_moved_pointer)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int *partners = malloc((size_t)size * sizeof(int) + 64);
    for (int i = 0; i < size; i++)
        partners[i] = (rank + i) % size;
    for (int i = 1; i < size && err == MPI_SUCCESS; i++) {
        partners++;
        err = MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype,
                           *partners, TAG, block(recvbuf, (rank - i + size) % size, recvcount,
                                                 recvtype),
                           recvcount, recvtype, (rank - i + size) % size, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    free(partners); /* <- */
    return err;
}
