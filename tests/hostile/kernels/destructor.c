/* Tries: to run after main, when everything has been written
 * Stopped by: the jail: no code of the kernel runs after it returns
 * Status: graded
 * Points: 0
 * Reason: nothing was written
 */
#include "mpilab.h"
#include <stdio.h>

__attribute__((destructor(101))) static void late(void)
{
    puts("last");
}

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}
