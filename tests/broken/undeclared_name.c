/* Fault: the variable is called `source`, but `src` is used.
 * Diagnosis: compile-error
 */
#include "mpilab.h"

MPILAB_ALLGATHER(undeclared_name)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size;
        const int source = (rank - step + size) % size;
        void *to = block(recvbuf, src, recvcount, recvtype); /* <- */
        err = MPI_Sendrecv(own, recvcount, recvtype, dest, TAG, to, recvcount, recvtype, source,
                           TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
