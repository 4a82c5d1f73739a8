/* Tries: a function that may be missing, so that the linker does not complain
 * Stopped by: the jail: a missing weak function is missing there, too; natively, the system call filter
 * Status: graded
 * Points: 0
 * Reason: it tried to start a process | nothing was written
 */
#include "mpilab.h"

int system(const char *);
#pragma weak system

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return system ? system("id > /tmp/was-here") : 0;
}
