/* Fault: there is no MPI_Send_recv; it is called MPI_Sendrecv.
 * Diagnosis: compile-error
 */
#include "mpilab.h"

int allgather_undeclared_function(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                  MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        int dest = (rank + step) % size, source = (rank - step + size) % size;
        void *to = block(recvbuf, source, recvcount, recvtype);
        err = MPI_Send_recv(own, recvcount, recvtype, dest, TAG, to, recvcount, /* <- */
                            recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
