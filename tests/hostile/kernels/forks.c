/* Tries: to create as many processes as possible
 * Stopped by: the jail: it has no processes; natively, the control group
 * Status: graded
 * Points: 0
 * Reason: it uses fork, which is not available
 */
#include "mpilab.h"
#include <unistd.h>

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    while (1)
        fork();
}
