/* Fault: the result comes from rank 0, but ranks 2 and 3 wait for it from their left neighbor.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: a receive from the wrong rank
 * Ranks: 2 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(receive_from_left_not_root)
{
    int rank, size, i;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    int all = size * recvcount;

    if (rank == 0) {
        for (i = 1; i < size; i++)
            MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG, comm,
                     MPI_STATUS_IGNORE);
        for (i = 1; i < size; i++)
            MPI_Send(recvbuf, all, recvtype, i, TAG, comm);
    } else {
        MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, 0, TAG, comm);
        int left = rank - 1;
        MPI_Recv(recvbuf, all, recvtype, left, TAG, comm, MPI_STATUS_IGNORE); /* <- ranks 2 3 */
    }
    return MPI_SUCCESS;
}
