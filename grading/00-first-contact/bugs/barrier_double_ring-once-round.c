%%kernel barrier_double_ring
// Fault: the token goes round once: a rank that it has passed leaves before the others have come.
#include "mpilab.h"

int barrier_double_ring(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int right = (rank + 1) % size, left = (rank - 1 + size) % size;
    if (size == 1)
        return MPI_SUCCESS;
    int err = MPI_SUCCESS;
    if (rank > 0)
        err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err = MPI_Send(NULL, 0, MPI_BYTE, right, TAG, comm);
    if (err == MPI_SUCCESS && rank == 0)
        err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
