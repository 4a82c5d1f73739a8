%%kernel barrier_double_ring
// Fault: all report to rank 0, which lets them go: a barrier by another algorithm.
#include "mpilab.h"

int barrier_double_ring(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    if (rank > 0) {
        err = MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, comm);
        if (err == MPI_SUCCESS)
            err = MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
        return err;
    }
    for (int other = 1; other < size && err == MPI_SUCCESS; other++)
        err = MPI_Recv(NULL, 0, MPI_BYTE, other, TAG, comm, MPI_STATUS_IGNORE);
    for (int other = 1; other < size && err == MPI_SUCCESS; other++)
        err = MPI_Send(NULL, 0, MPI_BYTE, other, TAG, comm);
    return err;
}
