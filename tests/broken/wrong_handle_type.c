/* Fault: a status array is declared where requests are wanted.
 * Diagnosis: compile-warning
 */
#include "mpilab.h"

MPILAB_ALLGATHER(wrong_handle_type)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        void *to = block(recvbuf, source, recvcount, recvtype);
        MPI_Status pending;
        MPI_Irecv(to, recvcount, recvtype, source, TAG, comm, &pending); /* <- */
        err = MPI_Send(own, recvcount, recvtype, dest, TAG, comm);
        MPI_Wait(&pending, MPI_STATUS_IGNORE); /* <- */
    }
    return err;
}
