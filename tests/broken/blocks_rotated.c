/* Fault: Bruck's algorithm without its last step, which puts the blocks back in order.
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: blocks in the wrong place
 * Ranks: 1 2 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(blocks_rotated)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    (void)sendcount, (void)sendtype;

    /* Own block first, then that of rank + 1, and so on. */
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, 0);
    for (int held = 1; held < size && err == MPI_SUCCESS; held *= 2) {
        const int blocks = held < size - held ? held : size - held;
        const int dest = (rank - held + size) % size, source = (rank + held) % size;
        err = MPI_Sendrecv(recvbuf, blocks * recvcount, recvtype, dest, TAG,
                           block(recvbuf, held, recvcount, recvtype), blocks * recvcount, recvtype,
                           source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
