/* Fault: the loop over the ranks ends with `size`, and there is no such rank.
 * Case: ranks=2 count=4
 * Diagnosis: mpi-error
 * Pattern: a rank that does not exist
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_size_as_a_rank(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int i = 0; i <= size && err == MPI_SUCCESS; i++)
        if (i != rank)
            err = MPI_Send(own, recvcount, recvtype, i, TAG, comm); /* <- ranks 0 1 */
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        if (i != rank)
            err = MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, TAG,
                           comm, MPI_STATUS_IGNORE);
    return err;
}
