%%kernel allgather_nonblocking_all
// Fault: returns before it waits where blocks are empty: nothing is missing, but requests leak.
#include "mpilab.h"
#include <stdlib.h>

int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
    int started = 0;
    for (int other = 0; other < size && err == MPI_SUCCESS; other++)
        if (other != rank)
            err = MPI_Irecv(block(recvbuf, other, recvcount, recvtype), recvcount, recvtype, other,
                            TAG, comm, &requests[started++]);
    for (int other = 0; other < size && err == MPI_SUCCESS; other++)
        if (other != rank)
            err = MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, other,
                            TAG, comm, &requests[started++]);
    if (recvcount == 0)
        return err;
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}
