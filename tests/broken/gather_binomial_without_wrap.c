/* Fault: a run of blocks is received at its first block, without going on at block 0.
 * Collective: gather
 * Case: ranks=4 count=4 root=1
 * Diagnosis: wrong-result
 * Pattern: outside the receive buffer
 * Ranks: 1
 */
#include "mpilab.h"
#include <stdlib.h>

/* How many ranks are at and under a virtual rank. */
static int under(int virtual_rank, int size)
{
    const int most = virtual_rank == 0 ? size : virtual_rank & -virtual_rank;
    return most < size - virtual_rank ? most : size - virtual_rank;
}

MPILAB_GATHER(binomial_without_wrap)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size, mine = under(virtual_rank, size);
    int bytes, err = MPI_SUCCESS;
    MPI_Type_size(sendtype, &bytes);
    char *const room = virtual_rank == 0 ? recvbuf : malloc((size_t)(mine * sendcount * bytes));
    const int own = virtual_rank == 0 ? rank : 0;

    if (room == NULL)
        return MPI_ERR_NO_MEM;
    place_own_block(sendbuf, sendcount, sendtype, room, sendcount, sendtype, own);
    for (int distance = 1; distance < mine && err == MPI_SUCCESS; distance *= 2) {
        const int child = virtual_rank + distance, blocks = under(child, size);
        err = MPI_Recv(room + (own + distance) * sendcount * bytes, blocks * sendcount, sendtype,
                       (child + root) % size, TAG, comm, MPI_STATUS_IGNORE);
    }
    if (virtual_rank == 0)
        return err;
    const int parent = (virtual_rank - (virtual_rank & -virtual_rank) + root) % size;
    if (err == MPI_SUCCESS)
        err = MPI_Send(room, mine * sendcount, sendtype, parent, TAG, comm);
    free(room);
    return err;
}
