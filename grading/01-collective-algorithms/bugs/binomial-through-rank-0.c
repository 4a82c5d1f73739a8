%%kernel bcast_binomial
// Fault: another root first hands the message to rank 0: one message and one round too many.
#include "mpilab.h"

int bcast_binomial(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, distance = 1, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (root != 0 && rank == root)
        err = MPI_Send(buffer, count, datatype, 0, TAG, comm);
    if (root != 0 && rank == 0)
        err = MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    while (distance < size && (rank & distance) == 0)
        distance *= 2;
    if (rank > 0 && err == MPI_SUCCESS)
        err = MPI_Recv(buffer, count, datatype, rank - distance, TAG, comm, MPI_STATUS_IGNORE);
    for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
        if (rank + distance < size)
            err = MPI_Send(buffer, count, datatype, rank + distance, TAG, comm);
    return err;
}
