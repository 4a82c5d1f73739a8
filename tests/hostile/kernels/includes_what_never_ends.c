/* Tries: to include a device that never ends, and one that waits for input
 * Stopped by: the limits on memory and processor time
 * Status: graded or ungradable
 * Points: 0
 * Reason: 
 */
#include "mpilab.h"
#include "/dev/stdin"
#include "/dev/zero"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}
