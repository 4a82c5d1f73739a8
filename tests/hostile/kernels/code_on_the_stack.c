/* Tries: an executable stack, which a nested function is enough to request
 * Stopped by: the jail: its stack cannot be executed, and functions cannot be nested
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
