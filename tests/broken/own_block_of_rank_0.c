/* Fault: only rank 0 copies its own block to the receive buffer.
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: own block missing
 * Ranks: 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(own_block_of_rank_0)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank == 0)
        err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int other = 0; other < size && err == MPI_SUCCESS; other++) {
        if (other == rank)
            continue;
        err = MPI_Sendrecv(sendbuf, sendcount, sendtype, other, TAG,
                           block(recvbuf, other, recvcount, recvtype), recvcount, recvtype, other,
                           TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
