/* Tries: to run before main, when nothing is recorded
 * Stopped by: the look at the object file: nothing for the loader to run
 * Status: graded
 * Points: 0
 * Reason: it has code that runs outside of the kernel (section .init_array)
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
