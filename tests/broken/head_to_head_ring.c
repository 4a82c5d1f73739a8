/* Fault: every rank of the ring receives from its left before it sends to its right.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: head-to-head receives
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

int allgather_head_to_head_ring(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int left = (rank - 1 + size) % size;
    int right = (rank + 1) % size;
    MPI_Status status;
    for (int i = 0; i < size - 1; i++) {
        void *in = block(recvbuf, (rank - i - 1 + size) % size, recvcount, recvtype);
        void *out = block(recvbuf, (rank - i + size) % size, recvcount, recvtype);
        MPI_Recv(in, recvcount, recvtype, left, TAG, comm, &status); /* <- ranks 0 1 2 3 */
        MPI_Send(out, recvcount, recvtype, right, TAG, comm);
    }
    return MPI_SUCCESS;
}
