/* Tries: to move the data by a chain in the first call, and only pretend to in later ones
 * Stopped by: each case has its own data
 * Status: graded or ungradable
 * Points: 0
 * Reason: the buffer is wrong | right when run on Open MPI
 */
#include "mpilab.h"
#include <string.h>

static char kept[1 << 16];
static int calls;

/* The messages that are asked for, without the data. */
static void pretend(int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        MPI_Recv(NULL, 0, MPI_BYTE, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int other = 0; other < size && rank == root; other++)
        if (other != root)
            MPI_Send(NULL, 0, MPI_BYTE, other, TAG, comm);
}

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, bytes;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_size(datatype, &bytes);
    const size_t all = (size_t)bytes * (size_t)count;
    if (calls++ == 0) {
        if (rank != root)
            MPI_Recv(buffer, count, datatype, (rank + size - 1) % size, TAG, comm,
                     MPI_STATUS_IGNORE);
        if ((rank + 1) % size != root)
            MPI_Send(buffer, count, datatype, (rank + 1) % size, TAG, comm);
        memcpy(kept, buffer, all);
        return MPI_SUCCESS;
    }
    if (rank != root)
        memcpy(buffer, kept, all);
    pretend(root, comm);
    return MPI_SUCCESS;
}
