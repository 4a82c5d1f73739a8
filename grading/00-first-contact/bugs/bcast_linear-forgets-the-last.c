%%kernel bcast_linear
// Fault: the loop ends one rank too early: the last one waits for ever.
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int dest = 0; dest < size - 1 && err == MPI_SUCCESS; dest++)
        if (dest != root)
            err = MPI_Send(buffer, count, datatype, dest, TAG, comm);
    return err;
}
