/* Fault: rank 0 gathers from all others, but the last rank leaves its MPI_Isend out.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: a request never completed
 * Ranks: 0
 */
#include "mpilab.h"

enum { MOST_RANKS = 64 };

MPILAB_ALLGATHER(request_not_sent)
{
    int rank, size, err;
    MPI_Request requests[MOST_RANKS];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int i = 0; i < size; i++)
        requests[i] = MPI_REQUEST_NULL;
    if (rank == 0) {
        for (int i = 1; i < size; i++)
            MPI_Irecv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                      &requests[i]);
    } else if (rank < size - 1) {
        MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, 0, TAG, comm,
                  &requests[0]);
    }
    err = MPI_Waitall(size, requests, MPI_STATUSES_IGNORE); /* <- rank 0 */
    if (rank == 0)
        for (int i = 1; i < size && err == MPI_SUCCESS; i++)
            err = MPI_Send(recvbuf, size * recvcount, recvtype, i, TAG, comm);
    else
        err = MPI_Recv(recvbuf, size * recvcount, recvtype, 0, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
