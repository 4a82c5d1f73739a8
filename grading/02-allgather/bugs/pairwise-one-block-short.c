%%kernel allgather_pairwise
// Fault: the last step sends one block too few, where the number of ranks is no power of two.
#include "mpilab.h"

int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (rank + distance) % size, source = (rank - distance + size) % size;
        const int blocks = distance <= size - distance ? distance : size - distance - 1;
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
