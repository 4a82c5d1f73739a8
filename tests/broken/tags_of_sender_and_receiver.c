/* Fault: messages carry the sender's rank as their tag, but are received with the receiver's rank.
 * Case: ranks=2 count=4
 * Diagnosis: deadlock
 * Pattern: mismatched tags
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_tags_of_sender_and_receiver(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                          void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                          MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    void *mine = block(recvbuf, rank, recvcount, recvtype);
    int tag = rank; /* so that the receiver knows whose block it is */
    for (int i = 0; i < size; i++)
        if (i != rank)
            MPI_Send(mine, recvcount, recvtype, i, tag, comm); /* <- ranks 0 1 */
    for (int i = 0; i < size; i++) {
        void *to = block(recvbuf, i, recvcount, recvtype);
        if (i != rank)
            MPI_Recv(to, recvcount, recvtype, i, tag, comm, MPI_STATUS_IGNORE); /* <- ranks 0 1 */
    }
    return MPI_SUCCESS;
}
