/* Fault: it calls MPI_Finalize, as a program does at its end.
 * Case: ranks=2 count=4
 * Diagnosis: mpi-error
 * Pattern: MPI initialized or finalized in a kernel
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(environment_finalize)
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
        MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                  &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize(); /* <- ranks 0 1 */
    return err;
}
