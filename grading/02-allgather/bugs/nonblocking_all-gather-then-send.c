%%kernel allgather_nonblocking_all
// Fault: gathers to rank 0, which sends everything to all: the right result by another algorithm.
#include "mpilab.h"
#include <stdlib.h>

int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request *requests = malloc(sizeof *requests * (size_t)size);
    int started = 0;
    if (rank == 0) {
        for (int other = 1; other < size; other++)
            MPI_Irecv(block(recvbuf, other, recvcount, recvtype), recvcount, recvtype, other, TAG,
                      comm, &requests[started++]);
        MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
        started = 0;
        for (int other = 1; other < size; other++)
            MPI_Isend(recvbuf, recvcount * size, recvtype, other, TAG, comm, &requests[started++]);
    } else {
        MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, 0, TAG, comm,
                  &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Irecv(recvbuf, recvcount * size, recvtype, 0, TAG, comm, &requests[started++]);
    }
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}
