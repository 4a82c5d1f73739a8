/* Tries: to let the stack overwrite the data of the jail, by endless recursion
 * Stopped by: the jail: the stack comes first in memory, and ends with a trap
 * Status: ungradable
 * Points: 0
 * Reason: right when run on Open MPI, but not when run in isolation
 */
#include "mpilab.h"

static int right(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int other = 0; other < size && err == MPI_SUCCESS; other++)
        if (other != root)
            err = MPI_Send(buffer, count, datatype, other, TAG, comm);
    return err;
}

#ifdef __wasm__
static int deeper(volatile char *above, int depth)
{
    volatile char here[4096];
    here[depth % 4096] = above[0];
    return deeper(here, depth + 1) + here[depth * 7 % 4096];
}
#endif

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
#ifdef __wasm__
    volatile char first = 1;
    count += deeper(&first, 1) == 12345;
#endif
    return right(buffer, count, datatype, root, comm);
}
