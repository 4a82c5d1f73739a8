%%kernel bcast_linear
// Fault: the root sends to itself first, and receives that afterwards: it relies on buffering.
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    for (int dest = 0; rank == root && dest < size && err == MPI_SUCCESS; dest++)
        err = MPI_Send(buffer, count, datatype, dest, TAG, comm);
    if (err == MPI_SUCCESS)
        err = MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
