/* Tries: to read memory gigabytes away in the jail: a datatype with huge strides, sent to itself
 * Stopped by: the jail: the extent of a datatype is computed and compared with the kernel's memory
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

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
#ifdef __wasm__
    MPI_Datatype far, farther;
    char found[4];
    MPI_Type_create_hvector(2, 1, (MPI_Aint)0x7fff0000, MPI_BYTE, &far);
    MPI_Type_create_hvector(2, 1, (MPI_Aint)0x7fff0000, far, &farther);
    MPI_Type_commit(&farther);
    MPI_Sendrecv(buffer, 1, farther, 0, 1, found, 4, MPI_BYTE, 0, 1, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
#endif
    return right(buffer, count, datatype, root, comm);
}
