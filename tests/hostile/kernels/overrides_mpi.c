/* Tries: to define an MPI function itself, so that the harness calls it
 * Stopped by: the linker; the symbol check
 * Status: graded
 * Points: 0
 * Reason: 'MPI_Barrier' is already defined elsewhere
 */
#include "mpilab.h"

int MPI_Barrier(MPI_Comm comm)
{
    (void)comm;
    return MPI_SUCCESS;
}

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    return MPI_Barrier(comm);
}
