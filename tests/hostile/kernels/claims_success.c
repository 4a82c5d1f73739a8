/* Tries: to report success without sending a message
 * Stopped by: the buffers are compared outside
 * Status: graded
 * Points: 0
 * Reason: wrong result
 */
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}
