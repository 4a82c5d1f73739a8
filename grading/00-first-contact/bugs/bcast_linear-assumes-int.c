%%kernel bcast_linear
// Fault: sends integers, whatever the datatype is.
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    (void)datatype;
    int err = MPI_SUCCESS;
    if (rank != root)
        return MPI_Recv(buffer, count, MPI_INT, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
        if (dest != root)
            err = MPI_Send(buffer, count, MPI_INT, dest, TAG, comm);
    return err;
}
