/* Tries: to fill the disk during compilation
 * Stopped by: the limit on file size
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
