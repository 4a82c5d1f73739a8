/* Fault: one send too many, to a rank that does not exist; nobody looks at what it returned.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: a rank that does not exist
 * Ranks: 2
 */
#include "mpilab.h"

int allgather_error_ignored_right_result(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                         void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                         MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int all = size * recvcount;

    /* Along the chain 0, 1, ..., P-1 each rank adds its block; the last one has all. */
    if (rank > 0)
        MPI_Recv(recvbuf, rank * recvcount, recvtype, rank - 1, TAG, comm, MPI_STATUS_IGNORE);
    MPI_Send(recvbuf, (rank + 1) * recvcount, recvtype, rank + 1, TAG, comm); /* <- rank 2 */

    MPI_Bcast(recvbuf, all, recvtype, size - 1, comm);
    return MPI_SUCCESS;
}
