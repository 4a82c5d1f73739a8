/* Fault: the sends are started with MPI_Isend and never waited for.
 * Case: ranks=3 count=4
 * Diagnosis: leak
 * Pattern: request leaked
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_request_leaked(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    MPI_Request request;
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        if (i != rank)
            err = MPI_Isend(own, recvcount, recvtype, i, TAG, comm, &request); /* <- ranks 0 1 2 */
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        if (i != rank)
            err = MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG,
                           comm, MPI_STATUS_IGNORE);
    return err;
}
