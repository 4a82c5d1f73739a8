/* Fault: a helper array never allocated goes to MPI, which asks for NULL only with its own types.
 * Case: ranks=2 count=4 datatype=contiguous
 * Diagnosis: crash
 * Pattern: a null pointer
 * Ranks: any
 */
#include "mpilab.h"

int allgather_null_pointer_to_mpi(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                  MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    char *scratch = NULL;
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        void *own = block(recvbuf, rank, recvcount, recvtype);
        err = MPI_Sendrecv(own, recvcount, recvtype, dest, TAG, /* <- */
                           scratch, recvcount, recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = copy_local(scratch, recvcount, recvtype,
                             block(recvbuf, source, recvcount, recvtype), recvcount, recvtype);
    }
    return err;
}
