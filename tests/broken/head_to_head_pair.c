/* Fault: both ranks of a pair receive before they send.
 * Case: ranks=2 count=4
 * Diagnosis: deadlock
 * Pattern: head-to-head receives
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_head_to_head_pair(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *mine = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int partner = rank ^ step;
        void *theirs = block(recvbuf, partner, recvcount, recvtype);
        err = MPI_Recv(theirs, recvcount, recvtype, partner, TAG, comm, /* <- ranks 0 1 */
                       MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(mine, recvcount, recvtype, partner, TAG, comm);
    }
    return err;
}
