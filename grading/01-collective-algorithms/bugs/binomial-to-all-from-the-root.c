%%kernel bcast_binomial
// Fault: the root sends to everybody: right, but that is the linear broadcast.
#include "mpilab.h"

int bcast_binomial(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int other = 0; other < size && err == MPI_SUCCESS; other++)
        if (other != root)
            err = MPI_Send(buffer, count, datatype, other, TAG, comm);
    return err;
}
