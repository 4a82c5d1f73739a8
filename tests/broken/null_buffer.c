/* Fault: what comes in is to go to a helper array that was never allocated.
 * Case: ranks=2 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid buffer
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(null_buffer)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    char *scratch = NULL;
    for (int other = 0; other < size && err == MPI_SUCCESS; other++) {
        if (other == rank)
            continue;
        MPI_Request request;
        err = MPI_Irecv(scratch, recvcount, MPI_INT, other, TAG, comm, &request); /* <- ranks 0 1 */
        if (err != MPI_SUCCESS)
            break;
        MPI_Send(own, recvcount, recvtype, other, TAG, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        err = copy_local(scratch, recvcount, MPI_INT, block(recvbuf, other, recvcount, recvtype),
                         recvcount, recvtype);
    }
    return err;
}
