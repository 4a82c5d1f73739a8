%%kernel barrier_dissemination
// Fault: one step too few, where the number of ranks is no power of two.
#include "mpilab.h"

int barrier_dissemination(MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int distance = 1; 2 * distance <= size && err == MPI_SUCCESS; distance *= 2)
        err = MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + distance) % size, TAG, NULL, 0, MPI_BYTE,
                           (rank - distance + size) % size, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
