%%kernel barrier_double_ring
// Fault: finds its neighbours with a mask of bits, which is right for powers of two only.
#include "mpilab.h"

int barrier_double_ring(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int right = (rank + 1) & (size - 1), left = (rank - 1) & (size - 1);
    int err = MPI_SUCCESS;
    for (int lap = 0; size > 1 && lap < 2 && err == MPI_SUCCESS; lap++) {
        if (rank > 0)
            err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(NULL, 0, MPI_BYTE, right, TAG, comm);
        if (err == MPI_SUCCESS && rank == 0)
            err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
