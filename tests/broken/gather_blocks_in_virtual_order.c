/* Fault: blocks lie in the order of virtual ranks, from the root on.
 * Collective: gather
 * Case: ranks=4 count=4 root=1
 * Diagnosis: wrong-result
 * Pattern: blocks in the wrong place
 * Ranks: 1
 */
#include "mpilab.h"

MPILAB_GATHER(blocks_in_virtual_order)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;
    if (rank != root)
        return MPI_Send(sendbuf, sendcount, sendtype, root, TAG, comm);

    int err =
        place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, virtual_rank);
    for (int i = 1; i < size && err == MPI_SUCCESS; i++) {
        const int source = (root + i) % size;
        err = MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, source, TAG,
                       comm, MPI_STATUS_IGNORE);
    }
    return err;
}
