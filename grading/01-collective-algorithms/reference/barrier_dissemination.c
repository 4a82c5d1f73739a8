%%kernel barrier_dissemination
#include "mpilab.h"

int barrier_dissemination(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (rank + distance) % size;
        const int source = (rank - distance + size) % size;
        err = MPI_Sendrecv(NULL, 0, MPI_BYTE, dest, TAG, NULL, 0, MPI_BYTE, source, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    return err;
}
