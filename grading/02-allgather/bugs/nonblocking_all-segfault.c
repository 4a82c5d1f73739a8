%%kernel allgather_nonblocking_all
// Fault: the last of three or more ranks has no memory for its requests.
#include "mpilab.h"
#include <stdlib.h>

int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request *requests = rank == size - 1 && size > 2 ? NULL : malloc(sizeof *requests * 2 * (size_t)size);
    int started = 0;
    for (int other = 0; other < size && err == MPI_SUCCESS; other++) {
        if (other == rank)
            continue;
        err = MPI_Irecv(block(recvbuf, other, recvcount, recvtype), recvcount, recvtype, other, TAG,
                        comm, &requests[started++]);
        requests[started] = MPI_REQUEST_NULL;
    }
    for (int other = 0; other < size && err == MPI_SUCCESS; other++)
        if (other != rank)
            err = MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, other,
                            TAG, comm, &requests[started++]);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}
