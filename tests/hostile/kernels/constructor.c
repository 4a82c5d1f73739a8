/* Tries: to run before main, while nothing is recorded
 * Stopped by: the jail: code that runs before the kernel runs inside the jail, too, and reaches nothing
 * Status: graded
 * Points: 0
 * Reason: nothing was written
 */
#include "mpilab.h"
#include <stdio.h>

__attribute__((constructor)) static void early(void)
{
    puts("first");
}

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}
