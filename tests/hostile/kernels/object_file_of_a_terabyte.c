/* Tries: filling the disk while it is compiled
 * Stopped by: the limit on the size of a file
 * Status: graded
 * Points: 0
 * Reason: does not compile
 */
#include "mpilab.h"

char area[1ul << 40] = {1};

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)datatype, (void)root, (void)comm;
    return area[count] = *(char *)buffer;
}
