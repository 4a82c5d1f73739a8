/* Fault: each rank sends its block once more than it is received.
 * Case: ranks=3 count=4
 * Diagnosis: leak
 * Pattern: unexpected message
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_message_left_over(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;

    for (int round = 0; round < size && err == MPI_SUCCESS; round++) {
        void *out = block(recvbuf, (rank - round + size) % size, recvcount, recvtype);
        void *in = block(recvbuf, (rank - round - 1 + size) % size, recvcount, recvtype);
        err = MPI_Send(out, recvcount, recvtype, right, TAG, comm); /* <- ranks 0 1 2 */
        if (err == MPI_SUCCESS && round < size - 1)
            err = MPI_Recv(in, recvcount, recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
