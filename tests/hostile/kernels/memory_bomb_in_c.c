/* Tries: to use all memory of the machine
 * Stopped by: the control group
 * Status: ungradable or graded
 * Points: 0
 * Reason: 
 */
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    while (1) {
        char *more = malloc(1 << 24);
        if (more != NULL)
            memset(more, 1, 1 << 24);
    }
}
