/* Fault: with MPI_IN_PLACE it sends from sendbuf; the sends are refused, and the wait crashes.
 * Case: ranks=3 count=4 in_place
 * Diagnosis: mpi-error
 * Pattern: invalid datatype
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLGATHER(refused_in_place)
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
        MPI_Isend(sendbuf, sendcount, sendtype, i, TAG, comm, &requests[n++]); /* <- */
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    return err;
}
