/* Fault: rank 0 waits for messages that the others send only after a barrier that rank 0 skips.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: a collective that a rank never enters
 * Ranks: 0
 */
#include "mpilab.h"

int allgather_never_enters_barrier(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                   MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    if (rank == 0) {
        for (int i = 1; i < size; i++) {
            void *to = block(recvbuf, i, recvcount, recvtype);
            MPI_Recv(to, recvcount, recvtype, i, TAG, comm, MPI_STATUS_IGNORE); /* <- rank 0 */
        }
    } else {
        MPI_Barrier(comm); /* wait until everybody is there */ /* <- ranks 1 2 */
        MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, 0, TAG, comm);
    }
    return MPI_Bcast(recvbuf, size * recvcount, recvtype, 0, comm);
}
