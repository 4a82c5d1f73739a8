/* Fault: all receives are started with one and the same request variable.
 * Case: ranks=3 count=4
 * Diagnosis: leak
 * Pattern: request leaked
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_unwaited_overwritten(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                   MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request request;
    for (int i = 0; i < size; i++)
        if (i != rank)
            MPI_Irecv(block(recvbuf, i, recvcount, recvtype), recvcount, /* <- ranks 0 1 2 */
                      recvtype, i, TAG, comm, &request);
    for (int i = 0; i < size; i++)
        if (i != rank)
            MPI_Send(sendbuf, sendcount, sendtype, i, TAG, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    /* Behind its block nothing of a rank can be received before it. */
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        if (i != rank)
            err = MPI_Sendrecv(&rank, 0, MPI_INT, i, TAG, &size, 0, MPI_INT, i, TAG, comm,
                               MPI_STATUS_IGNORE);
    return err;
}
