/* Tries: to be right natively, and do nothing where marks are decided
 * Stopped by: the jail: both runs must be right
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
    if (sizeof(void *) == 4)
        return MPI_SUCCESS;
    return right(buffer, count, datatype, root, comm);
}
