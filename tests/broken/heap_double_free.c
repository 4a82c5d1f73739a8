/* Fault: the array of requests is freed in the loop and once more behind it.
 * Case: ranks=2 count=4
 * Diagnosis: crash
 * Pattern: heap corrupted
 * Ranks: any
 */
#include "mpilab.h"
#include <stdlib.h>

int allgather_heap_double_free(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request *requests = malloc(2 * sizeof(MPI_Request));
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int source = (rank - step + size) % size;
        MPI_Irecv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source, TAG,
                  comm, &requests[0]);
        MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype,
                  (rank + step) % size, TAG, comm, &requests[1]);
        err = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (step == size - 1)
            free(requests);
    }
    free(requests); /* <- */
    return err;
}
