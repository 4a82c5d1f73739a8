/* Fault: the status is passed itself, not its address.
 * Diagnosis: compile-error
 */
#include "mpilab.h"

MPILAB_ALLGATHER(missing_ampersand)
{
    int rank, size;
    MPI_Status status;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; step < size; step++) {
        int source = (rank - step + size) % size;
        void *to = block(recvbuf, source, recvcount, recvtype);
        MPI_Request request;
        MPI_Irecv(to, recvcount, recvtype, source, TAG, comm, &request);
        MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype,
                 (rank + step) % size, TAG, comm);
        MPI_Wait(&request, status); /* <- */
    }
    return MPI_SUCCESS;
}
