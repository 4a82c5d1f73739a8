/* Tries: a stack that can be run, for which a function within a function is enough
 * Stopped by: the jail: no stack can be run there, and no function is within another
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)comm;
    int within(int value)
    {
        return value + root;
    }
    int (*volatile called)(int) = within;
    return called(3);
}
