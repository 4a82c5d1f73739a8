/* Fault: the blocks that end with its own are sent as if they began with it.
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: a block sent too early
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

int allgather_blocks_sent_too_early(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                    void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                    MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int dist = 1; dist < size && err == MPI_SUCCESS; dist *= 2) {
        int to = (rank + dist) % size, from = (rank - dist + size) % size;
        int length = dist < size - dist ? dist : size - dist;
        MPI_Datatype sent, received;
        wrapped_run_type(rank, length, size, recvcount, recvtype, &sent);
        wrapped_run_type(from, length, size, recvcount, recvtype, &received);
        err = MPI_Sendrecv(recvbuf, 1, sent, to, TAG, recvbuf, 1, received, /* <- ranks 0 1 2 3 */
                           from, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Type_free(&sent);
        MPI_Type_free(&received);
    }
    return err;
}
