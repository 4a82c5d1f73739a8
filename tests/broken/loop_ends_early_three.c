/* Fault: a rank whose partner does not exist leaves the loop instead of skipping the step.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: a loop that ends early
 * Ranks: 0 2
 */
#include "mpilab.h"

/* Recursive doubling; ranks beyond a power of two are left out. */
int allgather_loop_ends_early_three(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                    void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                    MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int mask = 1; mask < size && err == MPI_SUCCESS; mask *= 2) {
        const int partner = rank ^ mask;
        if (partner >= size)
            break;
        void *mine = block(recvbuf, rank / mask * mask, recvcount, recvtype);
        void *theirs = block(recvbuf, partner / mask * mask, recvcount, recvtype);
        err = MPI_Sendrecv(mine, recvcount, recvtype, partner, TAG, /* <- rank 0 */
                           theirs, recvcount, recvtype, partner, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
