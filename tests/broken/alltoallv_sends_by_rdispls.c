/* Fault: blocks are taken out of the send buffer at the displacements of the receive buffer.
 * Collective: alltoallv
 * Case: ranks=4 count=4 pattern=ragged
 * Diagnosis: wrong-result
 * Pattern: the wrong block sent
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLTOALLV(sends_by_rdispls)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    (void)sdispls;

    MPI_Request requests[2 * size];
    for (int peer = 0; peer < size && err == MPI_SUCCESS; peer++) {
        requests[2 * peer + 1] = MPI_REQUEST_NULL;
        err = MPI_Irecv(block(recvbuf, rdispls[peer], 1, recvtype), recvcounts[peer], recvtype,
                        peer, TAG, comm, &requests[2 * peer]);
        if (err == MPI_SUCCESS)
            err = MPI_Isend(block(sendbuf, rdispls[peer], 1, sendtype), sendcounts[peer], sendtype,
                            peer, TAG, comm, &requests[2 * peer + 1]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    return err;
}
