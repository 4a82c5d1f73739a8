/* Fault: a receive from any rank takes the longer message of another step.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: message truncated
 * Ranks: 0
 */
#include "mpilab.h"

int allgather_wildcard_takes_a_later_step(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                          void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                          MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    /* Rank 2 hands block 2 to rank 0; rank 1 has both for it in a later step, and is earlier:
     * MPI_Ssend ends when rank 0 has taken the message, so that the order is the same in each run. */
    if (rank == 0) {
        for (int i = 1; i < size; i++)
            err = MPI_Recv(block(recvbuf, size - i, recvcount, recvtype), /* <- rank 0 */
                           i * recvcount, recvtype, MPI_ANY_SOURCE, TAG, comm, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(block(recvbuf, 2, recvcount, recvtype), recvcount, recvtype, 2, TAG, comm,
                 MPI_STATUS_IGNORE);
        MPI_Ssend(block(recvbuf, 1, recvcount, recvtype), 2 * recvcount, recvtype, 0, TAG, comm);
        MPI_Send(&rank, 0, MPI_INT, 2, TAG, comm);
    } else {
        MPI_Send(sendbuf, sendcount, sendtype, 1, TAG, comm);
        MPI_Recv(&size, 0, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Send(sendbuf, sendcount, sendtype, 0, TAG, comm);
    }
    MPI_Bcast(recvbuf, 3 * recvcount, recvtype, 0, comm);
    return err;
}
