/* Fault: the address of a block is computed without the extent.
 * Collective: scatter
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: parts in the wrong place
 * Ranks: 1 2
 */
#include "mpilab.h"

MPILAB_SCATTER(address_in_bytes)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(recvbuf, recvcount, recvtype, root, TAG, comm, MPI_STATUS_IGNORE);

    int err = take_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    int bytes;
    MPI_Type_size(sendtype, &bytes);
    for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++) {
        const char *from = (const char *)sendbuf + dest * bytes; /* a block has sendcount of them */
        if (dest != root)
            err = MPI_Send(from, sendcount, sendtype, dest, TAG, comm);
    }
    return err;
}
