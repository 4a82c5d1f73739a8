/* Fault: both ranks test for the other's block until it is there, and send their own only then.
 * Case: ranks=2 count=4
 * Diagnosis: deadlock
 * Pattern: polling in vain
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_polls_before_sending(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                   MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int source = (rank - step + size) % size;
        void *to = block(recvbuf, source, recvcount, recvtype);
        MPI_Request request;
        MPI_Irecv(to, recvcount, recvtype, source, TAG, comm, &request);
        int arrived = 0;
        while (!arrived)
            MPI_Test(&request, &arrived, MPI_STATUS_IGNORE); /* <- ranks 0 1 */
        err = MPI_Send(own, recvcount, recvtype, (rank + step) % size, TAG, comm);
    }
    return err;
}
