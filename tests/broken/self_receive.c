/* Fault: the loop over the sources does not leave out the rank itself.
 * Case: ranks=2 count=4
 * Diagnosis: deadlock
 * Pattern: a message to oneself
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_self_receive(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int i = 0; i < size; i++) {
        if (i == rank)
            continue;
        MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, i, TAG, comm);
    }
    for (int i = 0; i < size; i++) {
        void *to = block(recvbuf, i, recvcount, recvtype);
        MPI_Recv(to, recvcount, recvtype, i, TAG, comm, MPI_STATUS_IGNORE); /* <- ranks 0 1 */
    }
    return MPI_SUCCESS;
}
