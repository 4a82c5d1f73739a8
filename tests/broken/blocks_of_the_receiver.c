/* Fault: each rank is sent the block that it is to fill itself.
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: the wrong block sent
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

int allgather_blocks_of_the_receiver(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                     void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                     MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        int to = (rank + step) % size, from = (rank - step + size) % size;
        err = MPI_Sendrecv(block(recvbuf, to, recvcount, recvtype), /* <- ranks 0 1 2 3 */
                           recvcount, recvtype, to, TAG, block(recvbuf, from, recvcount, recvtype),
                           recvcount, recvtype, from, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
