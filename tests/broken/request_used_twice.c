/* Fault: the request of a persistent receive is started again before it is complete.
 * Case: ranks=2 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid request
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(request_used_twice)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;

    MPI_Request from_left;
    MPI_Recv_init(block(recvbuf, left, recvcount, recvtype), recvcount, recvtype, left, TAG, comm,
                  &from_left);
    for (int round = 0; round < size && err == MPI_SUCCESS; round++)
        err = MPI_Start(&from_left); /* <- ranks 0 1 */
    if (err == MPI_SUCCESS)
        err = MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, right, TAG,
                       comm);
    if (err == MPI_SUCCESS)
        err = MPI_Wait(&from_left, MPI_STATUS_IGNORE);
    MPI_Request_free(&from_left);
    return err;
}
