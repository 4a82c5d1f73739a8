/* Tries: never to return
 * Stopped by: the time limit for each case
 * Status: graded
 * Points: 0
 * Reason: time-out
 */
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    for (volatile int i = 0;; i++)
        ;
}
