/* Tries: the collective itself, under a name that the recorder does not intercept
 * Stopped by: the symbol check: only calls that the rubric allows
 * Status: graded
 * Points: 0
 * Reason: it calls PMPI_Bcast, which this exercise does not allow
 */
#include "mpilab.h"

int plain(void *, int, MPI_Datatype, int, MPI_Comm) __asm__("PMPI_Bcast");

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return plain(buffer, count, datatype, root, comm);
}
