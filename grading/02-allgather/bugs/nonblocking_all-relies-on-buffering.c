%%kernel allgather_nonblocking_all
// Fault: every rank sends to all with MPI_Send before anybody receives.
#include "mpilab.h"
#include <stdlib.h>

int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++)
        err = MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype,
                       (rank + step) % size, TAG, comm);
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int source = (rank - step + size) % size;
        err = MPI_Recv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source, TAG,
                       comm, MPI_STATUS_IGNORE);
    }
    return err;
}
