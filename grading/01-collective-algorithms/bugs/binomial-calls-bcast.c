%%kernel bcast_binomial
// Fault: hides MPI_Bcast behind a macro.
#include "mpilab.h"

int bcast_binomial(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
#define JOIN(a, b) a##b
    return JOIN(MPI_B, cast)(buffer, count, datatype, root, comm);
}
