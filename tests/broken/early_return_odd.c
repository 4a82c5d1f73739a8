/* Fault: with 3 ranks the last one has no partner and returns; the others meet in a barrier.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: a collective that a rank never enters
 * Ranks: 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(early_return_odd)
{
    int rank, size, err;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    /* First with my neighbor ... */
    int partner = rank ^ 1;
    if (partner >= size)
        return MPI_SUCCESS;
    err = MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, partner, TAG,
                       block(recvbuf, partner, recvcount, recvtype), recvcount, recvtype, partner,
                       TAG, comm, MPI_STATUS_IGNORE);
    /* ... and when all have done that, the rest. */
    MPI_Barrier(comm); /* <- ranks 0 1 */
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);
    return err;
}
