/* Fault: rank 0 sends with TAG + 1, all others wait for TAG.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: mismatched tags
 * Ranks: 1 2
 */
#include "mpilab.h"
#include <stdlib.h>

enum { TAG_RESULT = TAG + 1 };

/* Rank 0 gathers all blocks and sends the whole result back to everybody. */
MPILAB_ALLGATHER(tags_nonblocking)
{
    int rank, size, started = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    if (rank != 0) {
        MPI_Request back;
        MPI_Irecv(recvbuf, size * recvcount, recvtype, 0, TAG, comm, &back);
        MPI_Send(sendbuf, sendcount, sendtype, 0, TAG, comm);
        return MPI_Wait(&back, MPI_STATUS_IGNORE); /* <- ranks 1 2 */
    }
    MPI_Request *requests = malloc((size_t)size * sizeof *requests);
    for (int i = 1; i < size; i++)
        err = MPI_Irecv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                        &requests[started++]);
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    for (int i = 1; i < size; i++)
        err = MPI_Send(recvbuf, size * recvcount, recvtype, i, TAG_RESULT, comm); /* <- rank 0 */
    free(requests);
    return err;
}
