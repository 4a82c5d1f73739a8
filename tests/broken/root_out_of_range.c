/* Fault: the roots are counted from 1 to size instead of from 0 to size - 1.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid root
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(root_out_of_range)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int root = 1; root <= size && err == MPI_SUCCESS; root++) {
        void *whose = block(recvbuf, root % size, recvcount, recvtype);
        err = MPI_Bcast(whose, recvcount, recvtype, root, comm); /* <- ranks 0 1 2 */
    }
    return err;
}
