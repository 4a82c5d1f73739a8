/* Fault: the copy of the communicator is never freed.
 * Case: ranks=2 count=4
 * Diagnosis: leak
 * Pattern: communicator leaked
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_communicator_leaked(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                  MPI_Comm comm)
{
    MPI_Comm mine;
    int err = MPI_Comm_dup(comm, &mine); /* <- ranks 0 1 */
    if (err != MPI_SUCCESS)
        return err;

    int rank, size;
    MPI_Comm_rank(mine, &rank);
    MPI_Comm_size(mine, &size);
    err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, mine);
    return err;
}
