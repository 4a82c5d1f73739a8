/* A ring in which every rank receives before it sends: the first page shows what the kit says of it. */
#include "mpilab.h"

int allgather_mine(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int left = (rank - 1 + size) % size, right = (rank + 1) % size;
    for (int i = 0; i < size - 1; i++) {
        void *in = block(recvbuf, (rank - i - 1 + size) % size, recvcount, recvtype);
        void *out = block(recvbuf, (rank - i + size) % size, recvcount, recvtype);
        MPI_Recv(in, recvcount, recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Send(out, recvcount, recvtype, right, TAG, comm);
    }
    return MPI_SUCCESS;
}
