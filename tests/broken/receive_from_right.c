/* Fault: each rank of the ring sends to its right and also receives from its right.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: a receive from the wrong rank
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_receive_from_right(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int neighbor = (rank + 1) % size;

    for (int round = 0; round < size - 1 && err == MPI_SUCCESS; round++) {
        void *out = block(recvbuf, (rank - round + size) % size, recvcount, recvtype);
        void *in = block(recvbuf, (rank - round - 1 + size) % size, recvcount, recvtype);
        err = MPI_Sendrecv(out, recvcount, recvtype, neighbor, TAG, /* <- ranks 0 1 2 */
                           in, recvcount, recvtype, neighbor, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
