/* Fault: a request that is complete is MPI_REQUEST_NULL already: the loop counts none of them.
 * Case: ranks=2 count=4
 * Diagnosis: time-out
 * Pattern: an endless loop
 * Ranks: 0 1
 * Limit: 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(loop_counts_no_request)
{
    int rank, size, done = 0, flag;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request requests[2];
    void *own = block(recvbuf, rank, recvcount, recvtype);
    void *other = block(recvbuf, 1 - rank, recvcount, recvtype);
    MPI_Irecv(other, recvcount, recvtype, 1 - rank, TAG, comm, &requests[0]);
    MPI_Isend(own, recvcount, recvtype, 1 - rank, TAG, comm, &requests[1]);

    while (done < 2)
        for (int i = 0; i < 2; i++) {
            err = MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE); /* <- ranks 0 1 */
            if (flag && requests[i] != MPI_REQUEST_NULL)            /* <- or here */
                done++;                                             /* <- or here */
        }
    return err;
}
