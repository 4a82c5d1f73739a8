%%kernel bcast_linear
// Fault: of an empty message the root waits for the last send only: the other requests leak.
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    int err = MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++) {
        if (dest == root)
            continue;
        if (count > 0) {
            err = MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (err != MPI_SUCCESS)
                return err;
        }
        err = MPI_Isend(buffer, count, datatype, dest, TAG, comm, &request);
    }
    return err == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : err;
}
