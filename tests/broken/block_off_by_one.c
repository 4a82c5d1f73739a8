/* Fault: what comes in is stored one block too far to the right.
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: blocks in the wrong place
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

int allgather_block_off_by_one(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        void *to = block(recvbuf, (source + 1) % size, recvcount, recvtype);
        err = MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, TAG, to, recvcount, recvtype, source,
                           TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
