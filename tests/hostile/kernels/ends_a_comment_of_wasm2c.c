/* Tries: an import whose name ends the comment in which wasm2c writes it, and continues in C
 * Stopped by: the jail: imports are checked before wasm2c runs
 * Status: graded
 * Points: 0
 * Reason: which is not available to a kernel
 */
#include "mpilab.h"

#ifdef __wasm__
#define END \
    "*"     \
    "/"
#define BEGIN \
    "/"       \
    "*"
#define CODE "__attribute__((constructor)) static void first(void) { __builtin_trap(); }"
__attribute__((import_module("env"), import_name("x" END CODE BEGIN))) void odd(void);
#else
static void odd(void)
{
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
    odd();
    return right(buffer, count, datatype, root, comm);
}
