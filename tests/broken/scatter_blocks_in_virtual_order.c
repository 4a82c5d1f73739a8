/* Fault: blocks are counted from the root, as ranks are.
 * Collective: scatter
 * Case: ranks=4 count=4 root=1
 * Diagnosis: wrong-result
 * Pattern: the block of another rank
 * Ranks: 0 2 3
 */
#include "mpilab.h"

MPILAB_SCATTER(blocks_in_virtual_order)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(recvbuf, recvcount, recvtype, root, TAG, comm, MPI_STATUS_IGNORE);

    int err = take_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int virtual_rank = 1; virtual_rank < size && err == MPI_SUCCESS; virtual_rank++) {
        const int dest = (virtual_rank + root) % size;
        err = MPI_Send(block(sendbuf, virtual_rank, sendcount, sendtype), sendcount, sendtype, dest,
                       TAG, comm);
    }
    return err;
}
