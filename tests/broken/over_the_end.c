/* Fault: blocks are counted from 1, so that of the last rank lies behind the receive buffer.
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: outside the receive buffer
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_over_the_end(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size, err;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank + 1);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        err = MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, TAG,
                           block(recvbuf, source + 1, recvcount, recvtype), recvcount, recvtype,
                           source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
