%%kernel bcast_linear
// Fault: has room for 32 requests, and starts one for each other rank.
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, started = 0;
    MPI_Request requests[32];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    int err = MPI_SUCCESS;
    for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
        if (dest != root)
            err = MPI_Isend(buffer, count, datatype, dest, TAG, comm, &requests[started++]);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    return err;
}
