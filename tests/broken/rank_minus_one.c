/* Fault: the left neighbor of rank 0 is not -1. Its send fails, and then all others wait for it.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: a rank that does not exist
 * Ranks: 0
 */
#include "mpilab.h"

MPILAB_ALLGATHER(rank_minus_one)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int left = rank - 1;
    const int right = (rank + 1) % size;

    for (int round = 0; round < size - 1 && err == MPI_SUCCESS; round++) {
        void *out = block(recvbuf, (rank + round) % size, recvcount, recvtype);
        void *in = block(recvbuf, (rank + round + 1) % size, recvcount, recvtype);
        err = MPI_Sendrecv(out, recvcount, recvtype, left, TAG, /* <- rank 0 */
                           in, recvcount, recvtype, right, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
