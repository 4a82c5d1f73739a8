/* Tries: to print without end
 * Stopped by: the limit on file size
 * Status: graded
 * Points: 0
 * Reason: SIGXFSZ
 */
#include "mpilab.h"
#include <stdio.h>
#include <string.h>

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    static char much[1 << 20];
    memset(much, 'x', sizeof much);
    while (1)
        fwrite(much, 1, sizeof much, stdout);
}
