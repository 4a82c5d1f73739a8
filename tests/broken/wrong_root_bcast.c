/* Fault: each rank begins with its own block, so the roots of one and the same MPI_Bcast differ.
 * Case: ranks=2 count=100000
 * Diagnosis: deadlock
 * Pattern: wrong root
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_wrong_root_bcast(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 0; step < size && err == MPI_SUCCESS; step++) {
        const int root = (rank + step) % size;
        void *whose = block(recvbuf, root, recvcount, recvtype);
        err = MPI_Bcast(whose, recvcount, recvtype, root, comm); /* <- ranks 0 1 */
    }
    return err;
}
