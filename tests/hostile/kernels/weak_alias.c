/* Tries: a name of MPI's as a weak alias of a function of its own
 * Stopped by: the look at the symbols: no name of the system's
 * Status: graded
 * Points: 0
 * Reason: it defines MPI_Get_count, a name of the system's
 */
#include "mpilab.h"

static int nothing(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    (void)status, (void)datatype;
    return *count = 0;
}
int MPI_Get_count(const MPI_Status *, MPI_Datatype, int *) __attribute__((weak, alias("nothing")));

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)datatype, (void)root, (void)comm;
    return nothing(MPI_STATUS_IGNORE, datatype, &count);
}
