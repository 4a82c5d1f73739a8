%%kernel bcast_pipeline
// Fault: passes the whole message along the chain: right, but nothing is pipelined.
#include "mpilab.h"

int bcast_pipeline(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int place = (rank - root + size) % size;
    if (place > 0)
        err = MPI_Recv(buffer, count, datatype, (rank - 1 + size) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    if (place < size - 1 && err == MPI_SUCCESS)
        err = MPI_Send(buffer, count, datatype, (rank + 1) % size, TAG, comm);
    return err;
}
