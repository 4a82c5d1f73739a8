/* Fault: the loop over the ranks goes one element beyond the array of partners.
 * Case: ranks=2 count=4
 * Diagnosis: sanitizer
 * Pattern: out of bounds
 * Ranks: any
 * Build: sanitize
 * Backends: mpirun (AddressSanitizer must be there when a process starts; engines run already)
 */
#include "mpilab.h"
#include <stdlib.h>

int allgather_sanitize_heap_by_one(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                   MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int *partners = malloc((size_t)size * sizeof *partners);
    for (int i = 0; i <= size; i++)
        partners[i] = (rank + i) % size; /* <- */
    for (int i = 0; i < size && err == MPI_SUCCESS; i++) {
        const int root = (partners[i] - rank + size) % size;
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);
    }
    free(partners);
    return err;
}
