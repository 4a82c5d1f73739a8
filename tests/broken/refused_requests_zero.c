/* Fault: two elements of the array, those of the own rank, are zero, which is not a request.
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Pattern: a request that was never started
 * Ranks: any
 */
#include "mpilab.h"
#include <stdlib.h>

MPILAB_ALLGATHER(refused_requests_zero)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request *requests = calloc(2 * (size_t)size, sizeof *requests);
    for (int i = 0; i < size; i++) {
        if (i == rank)
            continue;
        MPI_Irecv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                  &requests[2 * i]);
        MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                  &requests[2 * i + 1]);
    }
    err = MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE); /* <- */
    free(requests);
    return err;
}
