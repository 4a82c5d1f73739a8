/* Fault: rank 1 ends all ranks with MPI_Abort instead of returning an error code.
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Pattern: MPI_Abort was called
 * Ranks: 1
 */
#include "mpilab.h"
#include <stdio.h>

MPILAB_ALLGATHER(mpi_abort)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    if (rank == 1 && (size & (size - 1)) != 0) {
        fprintf(stderr, "%d ranks: recursive doubling needs a power of two\n", size);
        MPI_Abort(comm, 1); /* <- rank 1 */
    }
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);
    return err;
}
