%%kernel bcast_linear
// Fault: each rank passes the message on to the next one: the right result by another algorithm.
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int place = (rank - root + size) % size;
    int err = MPI_SUCCESS;
    if (place > 0)
        err = MPI_Recv(buffer, count, datatype, (rank - 1 + size) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS && place < size - 1)
        err = MPI_Send(buffer, count, datatype, (rank + 1) % size, TAG, comm);
    return err;
}
