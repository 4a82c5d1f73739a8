%%kernel allgather_nonblocking_all
// Fault: waits for a flag that only a call of MPI_Test could set.
#include "mpilab.h"
#include <stdlib.h>

int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request request;
    volatile int arrived = size == 1;
    if (size > 1) {
        const int left = (rank - 1 + size) % size;
        err = MPI_Irecv(block(recvbuf, left, recvcount, recvtype), recvcount, recvtype, left, TAG,
                        comm, &request);
    }
    while (!arrived)
        continue;
    return err;
}
