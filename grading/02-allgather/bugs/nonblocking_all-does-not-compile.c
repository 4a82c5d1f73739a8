%%kernel allgather_nonblocking_all
// Fault: a semicolon and an ampersand are missing.
#include "mpilab.h"
#include <stdlib.h>

int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request request
    for (int other = 0; other < size; other++)
        err = MPI_Irecv(recvbuf, recvcount, recvtype, other, TAG, comm, request);
    return err;
}
