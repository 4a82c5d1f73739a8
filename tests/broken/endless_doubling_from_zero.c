/* Fault: doubling 0 stays 0: the loop that looks for the power of two never ends.
 * Case: ranks=2 count=4
 * Diagnosis: time-out
 * Pattern: an endless loop
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(endless_doubling_from_zero)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    volatile int power = 0; /* the greatest power of two up to size */
    while (2 * power <= size) power = 2 * power; /* <- ranks 0 1 */

    for (int mask = 1; mask < power && err == MPI_SUCCESS; mask *= 2)
        err = MPI_Sendrecv(block(recvbuf, rank / mask * mask, recvcount, recvtype),
                           mask * recvcount, recvtype, rank ^ mask, TAG,
                           block(recvbuf, (rank ^ mask) / mask * mask, recvcount, recvtype),
                           mask * recvcount, recvtype, rank ^ mask, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
