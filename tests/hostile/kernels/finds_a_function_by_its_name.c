/* Tries: to look up a forbidden function through the loader
 * Stopped by: the jail: it has no loader
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"
#include <dlfcn.h>

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int (*found)(void *, int, MPI_Datatype, int, MPI_Comm);
    *(void **)&found = dlsym((void *)0, "PMPI_Bcast");
    return found(buffer, count, datatype, root, comm);
}
