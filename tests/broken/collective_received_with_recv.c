/* Fault: each root calls MPI_Bcast alone, the others receive its block with MPI_Recv.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: a collective that a rank never enters
 * Ranks: 1 2 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(collective_received_with_recv)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int i = 0; i < size && err == MPI_SUCCESS; i++) {
        void *whose = block(recvbuf, i, recvcount, recvtype);
        if (i == rank)
            err = MPI_Bcast(whose, recvcount, recvtype, i, comm); /* <- rank 0 */
        else
            err = MPI_Recv(whose, recvcount, recvtype, i, TAG, comm, /* <- ranks 1 2 3 */
                           MPI_STATUS_IGNORE);
    }
    return err;
}
