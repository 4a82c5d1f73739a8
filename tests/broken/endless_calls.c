/* Fault: a step that has no partner is not counted: ranks 1 and 2 talk to nobody forever.
 * Case: ranks=3 count=4
 * Diagnosis: time-out
 * Pattern: an endless loop
 * Ranks: 1 2
 * Limit: 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(endless_calls)
{
    int rank, size, mask = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    while (mask < size && err == MPI_SUCCESS) {
        const int partner = (rank ^ mask) < size ? rank ^ mask : MPI_PROC_NULL;
        void *theirs = block(recvbuf, partner < 0 ? rank : partner, recvcount, recvtype);
        void *own = block(recvbuf, rank, recvcount, recvtype);
        err = MPI_Sendrecv(own, recvcount, recvtype, partner, TAG, theirs, /* <- ranks 1 2 */
                           recvcount, recvtype, partner, TAG, comm, MPI_STATUS_IGNORE);
        if (partner != MPI_PROC_NULL)
            mask *= 2;
    }
    return err;
}
