/* Tries: to poll for a message that nobody sends, so that simulated time advances and no rank blocks
 * Stopped by: the deadlock detection: ranks that only poll wait, too
 * Status: graded
 * Points: 0
 * Reason: deadlock
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
    int found = 0;
    while (!found)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, comm, &found, MPI_STATUS_IGNORE);
    return right(buffer, count, datatype, root, comm);
}
