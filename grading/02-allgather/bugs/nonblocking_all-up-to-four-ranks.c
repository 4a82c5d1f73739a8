%%kernel allgather_nonblocking_all
// Fault: has a list of partners for up to 4 ranks, as many as the public checks try.
#include "mpilab.h"

int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    static const int partners[4][3] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request requests[6];
    int started = 0;
    if (size > 4)
        return err;
    for (int i = 0; i < size - 1 && err == MPI_SUCCESS; i++) {
        const int other = partners[rank][i];
        err = MPI_Irecv(block(recvbuf, other, recvcount, recvtype), recvcount, recvtype, other,
                        TAG, comm, &requests[started++]);
        if (err == MPI_SUCCESS)
            err = MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, other,
                            TAG, comm, &requests[started++]);
    }
    return err == MPI_SUCCESS ? MPI_Waitall(started, requests, MPI_STATUSES_IGNORE) : err;
}
