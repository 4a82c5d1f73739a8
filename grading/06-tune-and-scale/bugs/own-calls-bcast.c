%%kernel bcast_own
// Fault: leaves the work to MPI.
#include "mpilab.h"

int bcast_own(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return MPI_Bcast(buffer, count, datatype, root, comm);
}
