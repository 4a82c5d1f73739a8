%%kernel allgather_pairwise
// Fault: passes blocks on round a ring: the right result by another algorithm.
#include "mpilab.h"

int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int incoming = (rank - step + size) % size, outgoing = (incoming + 1) % size;
        err = MPI_Sendrecv(block(recvbuf, outgoing, recvcount, recvtype), recvcount, recvtype,
                           (rank + 1) % size, TAG, block(recvbuf, incoming, recvcount, recvtype),
                           recvcount, recvtype, (rank - 1 + size) % size, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    return err;
}
