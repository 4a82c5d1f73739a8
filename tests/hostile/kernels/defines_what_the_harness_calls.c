/* Tries: to define functions of the C library that the harness calls, so that it writes no results
 * Stopped by: objcopy and the jail: an answer's names are its own
 * Status: graded
 * Points: 0
 * Reason: nothing was written
 */
#include "mpilab.h"
#include <stdio.h>
#include <stdlib.h>

size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    (void)data, (void)size, (void)file;
    return count;
}

unsigned long long strtoull(const char *text, char **end, int base)
{
    (void)base;
    if (end != NULL)
        *end = (char *)text;
    return 1;
}

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}
