/* Fault: waits for a variable of its own that nobody sets; MPI_Test was forgotten.
 * Case: ranks=2 count=4
 * Diagnosis: time-out
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_polls_a_local_flag(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int source = (rank - step + size) % size;
        volatile int arrived = 0;
        MPI_Request request;
        MPI_Irecv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source, TAG,
                  comm, &request);
        err = MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype,
                       (rank + step) % size, TAG, comm);
        while (!arrived) continue; /* <- ranks 0 1 */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return err;
}
