%%kernel barrier_dissemination
// Fault: everybody sends before it receives.
#include "mpilab.h"

int barrier_dissemination(MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        err = MPI_Send(NULL, 0, MPI_BYTE, (rank + distance) % size, TAG, comm);
        if (err == MPI_SUCCESS)
            err = MPI_Recv(NULL, 0, MPI_BYTE, (rank - distance + size) % size, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    return err;
}
