%%kernel bcast_binomial
// Fault: has a table of distances for up to 16 ranks: the others are left out.
#include "mpilab.h"

int bcast_binomial(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    static const int distances[] = {8, 4, 2, 1};
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int place = (rank - root + size) % size;
    int err = MPI_SUCCESS, lowest = place > 0 ? place & -place : 16;
    if (place >= 16)
        return MPI_SUCCESS;
    if (place > 0)
        err = MPI_Recv(buffer, count, datatype, (place - lowest + root) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    for (int i = 0; i < 4 && err == MPI_SUCCESS; i++)
        if (distances[i] < lowest && place + distances[i] < size)
            err = MPI_Send(buffer, count, datatype, (place + distances[i] + root) % size, TAG,
                           comm);
    return err;
}
