/* Tries: to read the recorder's file through the name of a checked variant (such as __read_chk)
 * Stopped by: the jail: it has no files
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"
#include <stdio.h>

size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)datatype, (void)root, (void)comm;
    stdout->_fileno = 20;
    return __fread_chk(buffer, 64, 1, (size_t)count, stdout) == 0;
}
