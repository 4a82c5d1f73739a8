/* Fault: the copy of the communicator is freed in the first round and used in the second.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid communicator
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLGATHER(communicator_freed)
{
    int rank, size;
    MPI_Comm mine;
    MPI_Comm_dup(comm, &mine);
    MPI_Comm_rank(mine, &rank);
    MPI_Comm_size(mine, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int root = 0; root < size && err == MPI_SUCCESS; root++) {
        void *whose = block(recvbuf, root, recvcount, recvtype);
        err = MPI_Bcast(whose, recvcount, recvtype, root, mine); /* <- */
        if (root == 0)
            MPI_Comm_free(&mine);
    }
    return err;
}
