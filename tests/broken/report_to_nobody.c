/* Fault: the others report to rank 0 when they are done; rank 0 has returned without listening.
 * Case: ranks=3 count=4 strict
 * Diagnosis: deadlock
 * Pattern: a message left over
 * Ranks: 1 2
 */
#include "mpilab.h"

int allgather_report_to_nobody(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        err = MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, dest,
                           TAG, block(recvbuf, source, recvcount, recvtype), recvcount, recvtype,
                           source, TAG, comm, MPI_STATUS_IGNORE);
    }
    const int done = 1;
    if (rank != 0)
        MPI_Send(&done, 1, MPI_INT, 0, TAG + 1, comm); /* <- ranks 1 2 */
    return err;
}
