/* Fault: the root gives all blocks to MPI_Bcast, the others have room for one.
 * Case: ranks=4 count=4
 * Diagnosis: mpi-error
 * Pattern: different counts
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLGATHER(collective_count_of_the_root)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    if (err == MPI_SUCCESS)
        err = MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, 0, comm);
    if (err == MPI_SUCCESS) {
        const int count = rank == 0 ? size * recvcount : recvcount;
        err = MPI_Bcast(recvbuf, count, recvtype, 0, comm); /* <- ranks 0 1 2 3 */
    }
    return err;
}
