/* Fault: the semicolon after the call of MPI_Comm_size is missing.
 * Diagnosis: compile-error
 */
#include "mpilab.h"

int allgather_missing_semicolon(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size) /* <- */
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);
    return err;
}
