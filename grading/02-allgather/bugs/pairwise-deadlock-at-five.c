%%kernel allgather_pairwise
// Fault: an own way for 5 ranks, a ring, in which everybody receives first.
#include "mpilab.h"

int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; size == 5 && step < size && err == MPI_SUCCESS; step++) {
        const int incoming = (rank - step + size) % size, outgoing = (incoming + 1) % size;
        err = MPI_Recv(block(recvbuf, incoming, recvcount, recvtype), recvcount, recvtype,
                       (rank - 1 + size) % size, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(block(recvbuf, outgoing, recvcount, recvtype), recvcount, recvtype,
                           (rank + 1) % size, TAG, comm);
    }
    for (int distance = 1; size != 5 && distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (rank + distance) % size, source = (rank - distance + size) % size;
        const int blocks = distance < size - distance ? distance : size - distance;
        MPI_Datatype outgoing, incoming;
        wrapped_run_type((rank - blocks + 1 + size) % size, blocks, size, recvcount, recvtype,
                         &outgoing);
        wrapped_run_type((source - blocks + 1 + size) % size, blocks, size, recvcount, recvtype,
                         &incoming);
        err = MPI_Sendrecv(recvbuf, 1, outgoing, dest, TAG, recvbuf, 1, incoming, source, TAG, comm,
                           MPI_STATUS_IGNORE);
        MPI_Type_free(&outgoing);
        MPI_Type_free(&incoming);
    }
    return err;
}
