/* Tries: to replace functions that the jail calls in it, by exporting their names
 * Stopped by: the jail: exports are checked by exact name and type
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"

#ifdef __wasm__
__attribute__((export_name("jail_copy"))) int copy(void)
{
    return 1;
}
__attribute__((export_name("_start"))) int start(void)
{
    return 1;
}
#endif

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

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return right(buffer, count, datatype, root, comm);
}
