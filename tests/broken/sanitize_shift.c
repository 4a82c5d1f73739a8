/* Fault: on rank 2 a 1 is shifted by 32 bits and more, which an int does not have.
 * Case: ranks=3 count=4
 * Diagnosis: sanitizer
 * Pattern: undefined behavior
 * Ranks: 2
 * Build: sanitize
 * Backends: mpirun (AddressSanitizer must be there when a process starts; engines run already)
 */
#include "mpilab.h"

MPILAB_ALLGATHER(sanitize_shift)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int bits = rank * 16; /* which blocks do I have? 16 bits a rank */
    int have = 1 << bits; /* <- rank 2 */
    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);
    return have == 0 ? MPI_ERR_OTHER : err;
}
