/* Fault: the root does not take its own block.
 * Collective: scatter
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: own block missing
 * Ranks: 0
 */
#include "mpilab.h"

MPILAB_SCATTER(own_block_missing)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(recvbuf, recvcount, recvtype, root, TAG, comm, MPI_STATUS_IGNORE);

    MPI_Request requests[size];
    int err = MPI_SUCCESS;
    for (int dest = 0; dest < size; dest++) {
        requests[dest] = MPI_REQUEST_NULL;
        if (dest != root && err == MPI_SUCCESS)
            err = MPI_Isend(block(sendbuf, dest, sendcount, sendtype), sendcount, sendtype, dest,
                            TAG, comm, &requests[dest]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(size, requests, MPI_STATUSES_IGNORE);
    return err;
}
