/* Tries: an Open MPI function named like a predefined handle
 * Stopped by: the jail: it offers only MPI's own calls, one by one
 * Status: graded
 * Points: 0
 * Reason: it uses ompi_mpi_abort, which is not available
 */
#include "mpilab.h"

int ompi_mpi_abort(MPI_Comm, int);

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    return ompi_mpi_abort(comm, 0);
}
