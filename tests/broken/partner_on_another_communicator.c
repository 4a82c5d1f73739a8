/* Fault: it listens on a copy of the communicator that it sends on.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: different communicators
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(partner_on_another_communicator)
{
    int rank, size, n = 0;
    MPI_Comm copy;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Comm_dup(comm, &copy);
    MPI_Request requests[2 * size];
    void *own = block(recvbuf, rank, recvcount, recvtype);
    for (int i = 0; i < size; i++) {
        void *whose = block(recvbuf, i, recvcount, recvtype);
        if (i == rank)
            continue;
        MPI_Irecv(whose, recvcount, recvtype, i, TAG, copy, &requests[n++]); /* <- ranks 0 1 2 3 */
        MPI_Isend(own, recvcount, recvtype, i, TAG, comm, &requests[n++]);   /* <- ranks 0 1 2 3 */
    }
    int err = MPI_Waitall(n, requests, MPI_STATUSES_IGNORE); /* <- ranks 0 1 2 3 */
    MPI_Comm_free(&copy);
    return err;
}
