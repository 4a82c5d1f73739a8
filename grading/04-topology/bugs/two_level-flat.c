%%kernel bcast_two_level
// Fault: one binomial tree over all ranks, which knows no nodes.
#include "mpilab.h"

int bcast_two_level(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, distance = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int v = (rank - root + size) % size;
    int err = MPI_SUCCESS;
    while (distance < size && (v & distance) == 0)
        distance *= 2;
    if (v > 0)
        err = MPI_Recv(buffer, count, datatype, (rank - distance + size) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
        if (v + distance < size)
            err = MPI_Send(buffer, count, datatype, (rank + distance) % size, TAG, comm);
    return err;
}
