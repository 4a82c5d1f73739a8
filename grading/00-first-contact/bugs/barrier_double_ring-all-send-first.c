%%kernel barrier_double_ring
// Fault: every rank sends to the right and then receives from the left, P-1 times: a barrier, but another one,
// and it relies on buffering.
#include "mpilab.h"

int barrier_double_ring(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int right = (rank + 1) % size, left = (rank - 1 + size) % size;
    int err = MPI_SUCCESS;
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        err = MPI_Send(NULL, 0, MPI_BYTE, right, TAG, comm);
        if (err == MPI_SUCCESS)
            err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
