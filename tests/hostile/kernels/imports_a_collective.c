/* Tries: the collective itself, imported into the jail under a helper's name; natively it is right
 * Stopped by: the jail: imports are checked by exact name and module
 * Status: graded
 * Points: 0
 * Reason: it uses 'MPI_Bcast', which is not available to a kernel
 */
#include "mpilab.h"

#ifdef __wasm__
__attribute__((import_module("env"), import_name("MPI_Bcast"))) int right(void *, int, MPI_Datatype,
                                                                          int, MPI_Comm);
#else
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
#endif

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return right(buffer, count, datatype, root, comm);
}
