%%kernel barrier_double_ring
// Fault: nobody has the token at the beginning: everybody waits for it.
#include "mpilab.h"

int barrier_double_ring(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int right = (rank + 1) % size, left = (rank - 1 + size) % size;
    int err = MPI_SUCCESS;
    for (int lap = 0; size > 1 && lap < 2 && err == MPI_SUCCESS; lap++) {
        err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(NULL, 0, MPI_BYTE, right, TAG, comm);
    }
    return err;
}
