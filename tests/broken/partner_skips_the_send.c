/* Fault: the last rank of the ring sends to nobody: an if that belongs to a chain.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: a missing send
 * Ranks: 0 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(partner_skips_the_send)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 0; step < size - 1; step++) {
        const int from = (rank - 1 + size) % size;
        void *known = block(recvbuf, (rank - step + size) % size, recvcount, recvtype);
        void *next = block(recvbuf, (rank - step - 1 + size) % size, recvcount, recvtype);
        if (rank + 1 < size)
            MPI_Send(known, recvcount, recvtype, rank + 1, TAG, comm);
        err = MPI_Recv(next, recvcount, recvtype, from, TAG, comm, /* <- ranks 0 1 2 */
                       MPI_STATUS_IGNORE);
    }
    return err;
}
