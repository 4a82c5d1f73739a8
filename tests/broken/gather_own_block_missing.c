/* Fault: the root does not copy its own block.
 * Collective: gather
 * Case: ranks=3 count=4 root=2
 * Diagnosis: wrong-result
 * Pattern: own block missing
 * Ranks: 2
 */
#include "mpilab.h"

MPILAB_GATHER(own_block_missing)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Send(sendbuf, sendcount, sendtype, root, TAG, comm);

    MPI_Request requests[size];
    int err = MPI_SUCCESS;
    for (int source = 0; source < size; source++) {
        requests[source] = MPI_REQUEST_NULL;
        if (source != root && err == MPI_SUCCESS)
            err = MPI_Irecv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype,
                            source, TAG, comm, &requests[source]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(size, requests, MPI_STATUSES_IGNORE);
    return err;
}
