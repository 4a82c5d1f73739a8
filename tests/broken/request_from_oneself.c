/* Fault: each rank also waits for a block from itself, which it never sends.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: a request never completed
 * Ranks: 0 1 2
 */
#include "mpilab.h"
#include <stdlib.h>

int allgather_request_from_oneself(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                   MPI_Comm comm)
{
    int rank, size, n = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
    for (int i = 0; i < size; i++)
        MPI_Irecv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                  &requests[n++]);
    for (int i = 0; i < size; i++)
        if (i != rank)
            MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                      &requests[n++]);
    int err = MPI_Waitall(n, requests, MPI_STATUSES_IGNORE); /* <- ranks 0 1 2 */
    free(requests);
    return err;
}
