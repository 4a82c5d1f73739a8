/* Fault: every rank puts its own block into recvbuf, not only the root.
 * Collective: gather
 * Case: ranks=2 count=4
 * Diagnosis: crash
 * Pattern: a null pointer
 * Ranks: 1
 */
#include "mpilab.h"
#include <string.h>

MPILAB_GATHER(own_block_everywhere)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int bytes;
    MPI_Type_size(sendtype, &bytes);
    char *own = block(recvbuf, rank, recvcount, recvtype);
    if (sendbuf != MPI_IN_PLACE)
        memcpy(own, sendbuf, (size_t)sendcount * (size_t)bytes); /* <- rank 1 */
    if (rank != root)
        return MPI_Send(sendbuf, sendcount, sendtype, root, TAG, comm);

    int err = MPI_SUCCESS;
    for (int source = 0; source < size && err == MPI_SUCCESS; source++)
        if (source != root)
            err = MPI_Recv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source,
                           TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
