/* Fault: each rank sends on the communicator that it was given and receives on a copy of it.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: different communicators
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_different_communicators_copy(const void *sendbuf, int sendcount,
                                           MPI_Datatype sendtype, void *recvbuf, int recvcount,
                                           MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    /* A copy of our own, so that no message of somebody else gets in between. */
    MPI_Comm private_comm;
    MPI_Comm_dup(comm, &private_comm);
    void *own = block(recvbuf, rank, recvcount, recvtype);
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        void *to = block(recvbuf, source, recvcount, recvtype);
        MPI_Request request;
        MPI_Irecv(to, recvcount, recvtype, source, TAG, private_comm, &request);
        err = MPI_Send(own, recvcount, recvtype, dest, TAG, comm); /* <- ranks 0 1 2 */
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* <- ranks 0 1 2 */
    }
    MPI_Comm_free(&private_comm);
    return err;
}
