/* Tries: the collective under another name, renamed afterwards by a pragma
 * Stopped by: the symbol check after compilation
 * Status: graded
 * Points: 0
 * Reason: it calls MPI_Bcast, which this exercise does not allow
 */
#include "mpilab.h"

#pragma redefine_extname my_own MPI_Bcast
int my_own(void *, int, MPI_Datatype, int, MPI_Comm);

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return my_own(buffer, count, datatype, root, comm);
}
