/* Fault: a send with MPI_ANY_TAG is refused and starts no request; the wait crashes over it.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid tag
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLGATHER(refused_any_tag)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Request requests[2 * size];
    int n = 0;
    for (int i = 0; i < size; i++) {
        if (i == rank)
            continue;
        MPI_Irecv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                  &requests[n++]);
        MPI_Isend(block(recvbuf, rank, recvcount, recvtype), /* <- */
                  recvcount, recvtype, i, MPI_ANY_TAG, comm, &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    return err;
}
