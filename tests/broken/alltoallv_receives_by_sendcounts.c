/* Fault: receives are posted with the counts of what is sent.
 * Collective: alltoallv
 * Case: ranks=3 count=4 pattern=ragged
 * Diagnosis: mpi-error
 * Pattern: message truncated
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLTOALLV(receives_by_sendcounts)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    (void)recvcounts;

    MPI_Request requests[2 * size];
    for (int peer = 0; peer < size && err == MPI_SUCCESS; peer++) {
        void *to = block(recvbuf, rdispls[peer], 1, recvtype);
        void *from = block(sendbuf, sdispls[peer], 1, sendtype);
        requests[2 * peer + 1] = MPI_REQUEST_NULL;
        err = MPI_Irecv(to, sendcounts[peer], recvtype, peer, TAG, comm, /* <- ranks 0 1 2 */
                        &requests[2 * peer]);
        if (err == MPI_SUCCESS)
            err = MPI_Isend(from, sendcounts[peer], sendtype, peer, TAG, comm,
                            &requests[2 * peer + 1]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE); /* <- ranks 0 1 2 */
    return err;
}
