%%kernel bcast_linear
// Fault: takes rank 0 for the root, whatever the argument says.
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    (void)root;
    int err = MPI_SUCCESS;
    if (rank != 0)
        return MPI_Recv(buffer, count, datatype, 0, TAG, comm, MPI_STATUS_IGNORE);
    for (int dest = 1; dest < size && err == MPI_SUCCESS; dest++)
        err = MPI_Send(buffer, count, datatype, dest, TAG, comm);
    return err;
}
