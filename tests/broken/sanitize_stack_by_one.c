/* Fault: an array for four ranks, counted from 1 to 4.
 * Case: ranks=4 count=4
 * Diagnosis: sanitizer
 * Pattern: out of bounds
 * Ranks: 3
 * Build: sanitize
 * Backends: mpirun (AddressSanitizer must be there when a process starts; engines run already)
 */
#include "mpilab.h"

MPILAB_ALLGATHER(sanitize_stack_by_one)
{
    int rank, size;
    int seen[4] = {0};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    seen[rank + 1] = 1; /* <- rank 3 */
    for (int root = 0; root < size && err == MPI_SUCCESS; root++) {
        if (root < 4 && seen[root] > 1)
            continue;
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);
    }
    return err;
}
