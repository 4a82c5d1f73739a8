/* Fault: only the root calls MPI_Bcast; it returns at once, for so little data.
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: a collective that a rank never enters
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(collective_root_alone)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    if (err == MPI_SUCCESS)
        err = MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, 0, comm);
    if (rank == 0 && err == MPI_SUCCESS)
        err = MPI_Bcast(recvbuf, size * recvcount, recvtype, 0, comm); /* <- rank 0 */
    return err;
}
