%%kernel bcast_binomial
// Fault: serves the child with the smallest subtree first, so that the large ones begin late.
#include "mpilab.h"

int bcast_binomial(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, lowest = 1, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int place = (rank - root + size) % size;
    while (lowest < size && (place & lowest) == 0)
        lowest *= 2;
    if (place > 0)
        err = MPI_Recv(buffer, count, datatype, (place - lowest + root) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    for (int distance = 1; distance < lowest && err == MPI_SUCCESS; distance *= 2)
        if (place + distance < size)
            err = MPI_Send(buffer, count, datatype, (place + distance + root) % size, TAG, comm);
    return err;
}
