%%kernel bcast_binomial
// Fault: the tree begins at rank 0, whatever the root.
#include "mpilab.h"

int bcast_binomial(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, distance = 1, err = MPI_SUCCESS;
    (void)root;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    while (distance < size && (rank & distance) == 0)
        distance *= 2;
    if (rank > 0)
        err = MPI_Recv(buffer, count, datatype, rank - distance, TAG, comm, MPI_STATUS_IGNORE);
    for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
        if (rank + distance < size)
            err = MPI_Send(buffer, count, datatype, rank + distance, TAG, comm);
    return err;
}
