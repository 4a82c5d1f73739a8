/* Fault: blocks are received one behind the other, whatever rdispls says.
 * Collective: alltoallv
 * Case: ranks=4 count=4 pattern=ragged
 * Diagnosis: wrong-result
 * Pattern: blocks in the wrong place
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

MPILAB_ALLTOALLV(displs_ignored)
{
    int rank, size, err = MPI_SUCCESS, begin = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    (void)rdispls;

    MPI_Request requests[2 * size];
    for (int peer = 0; peer < size && err == MPI_SUCCESS; peer++) {
        requests[2 * peer + 1] = MPI_REQUEST_NULL;
        err = MPI_Irecv(block(recvbuf, begin, 1, recvtype), recvcounts[peer], recvtype, peer, TAG,
                        comm, &requests[2 * peer]);
        begin += recvcounts[peer];
        if (err == MPI_SUCCESS)
            err = MPI_Isend(block(sendbuf, sdispls[peer], 1, sendtype), sendcounts[peer], sendtype,
                            peer, TAG, comm, &requests[2 * peer + 1]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    return err;
}
