/* Fault: all blocks are sent to rank 0, which has no receive buffer.
 * Collective: gather
 * Case: ranks=3 count=4 root=2
 * Diagnosis: crash
 * Pattern: a null pointer
 * Ranks: 0
 */
#include "mpilab.h"

MPILAB_GATHER(root_taken_as_zero)
{
    (void)root;
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != 0)
        return MPI_Send(sendbuf, sendcount, sendtype, 0, TAG, comm);

    int err = MPI_SUCCESS;
    for (int source = 1; source < size && err == MPI_SUCCESS; source++)
        err = MPI_Recv(block(recvbuf, source, recvcount, recvtype), /* <- rank 0 */
                       recvcount, recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    return err;
}
