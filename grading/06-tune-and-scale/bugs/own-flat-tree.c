%%kernel bcast_own
// Fault: one binomial tree over all ranks, which knows no nodes.
#include "mpilab.h"

int bcast_own(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, distance = 1, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int self = (rank - root + size) % size;
    while (distance < size && (self & distance) == 0)
        distance *= 2;
    if (self > 0)
        err = MPI_Recv(buffer, count, datatype, (self - distance + root) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
        if (self + distance < size)
            err = MPI_Send(buffer, count, datatype, (self + distance + root) % size, TAG, comm);
    return err;
}
