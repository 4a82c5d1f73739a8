%%kernel bcast_linear
// Fault: leaves the work to MPI_Bcast.
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    (void)rank, (void)size;
    return MPI_Bcast(buffer, count, datatype, root, comm);
}
