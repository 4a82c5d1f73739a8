/* Fault: the array of requests is freed before the second half of the ranks is waited for.
 * Case: ranks=3 count=4
 * Diagnosis: sanitizer
 * Pattern: use after free
 * Ranks: any
 * Build: sanitize
 * Backends: mpirun (AddressSanitizer must be there when a process starts; engines run already)
 */
#include "mpilab.h"
#include <stdlib.h>

int allgather_sanitize_use_after_free(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                      void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                      MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int *order = malloc((size_t)size * sizeof *order);
    for (int i = 0; i < size; i++)
        order[i] = size - 1 - i;
    for (int i = 0; i < size && err == MPI_SUCCESS; i++) {
        const int root = order[i]; /* <- */
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);
        if (i == size / 2)
            free(order);
    }
    return err;
}
