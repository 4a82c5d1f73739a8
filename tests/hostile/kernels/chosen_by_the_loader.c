/* Tries: a function that the loader calls to select an implementation (ifunc)
 * Stopped by: the jail: it has no loader that selects functions
 * Status: graded
 * Points: 0
 * Reason: it uses chosen, which is not available
 */
#include "mpilab.h"

static int plain(void)
{
    return 0;
}
static int (*choose(void))(void)
{
    return plain;
}
int chosen(void) __attribute__((ifunc("choose")));

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return chosen();
}
