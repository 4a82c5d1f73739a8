/* Fault: each rank sends its own block to itself with MPI_Send before it receives it.
 * Case: ranks=2 count=4 strict
 * Diagnosis: deadlock
 * Pattern: a message to oneself
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_self_send_strict(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    /* My own block comes as a message, like all the others. */
    void *own = block(recvbuf, rank, recvcount, recvtype);
    if (sendbuf != MPI_IN_PLACE) {
        MPI_Send(sendbuf, sendcount, sendtype, rank, TAG, comm); /* <- ranks 0 1 */
        MPI_Recv(own, recvcount, recvtype, rank, TAG, comm, MPI_STATUS_IGNORE);
    }
    for (int step = 1; step < size; step++) {
        int source = (rank - step + size) % size;
        MPI_Sendrecv(own, recvcount, recvtype, (rank + step) % size, TAG,
                     block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source, TAG,
                     comm, MPI_STATUS_IGNORE);
    }
    return MPI_SUCCESS;
}
