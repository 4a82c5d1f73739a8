%%kernel bcast_binomial
// Fault: sends to children that are not there, where the number of ranks is no power of two.
#include "mpilab.h"

int bcast_binomial(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, distance = 1, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int place = (rank - root + size) % size;
    while (distance < size && (place & distance) == 0)
        distance *= 2;
    if (place > 0)
        err = MPI_Recv(buffer, count, datatype, (place - distance + root) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2) {
        const int child = place + distance;
        err = MPI_Send(buffer, count, datatype, child < size ? (child + root) % size : child, TAG,
                       comm);
    }
    return err;
}
