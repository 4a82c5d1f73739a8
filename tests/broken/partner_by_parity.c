/* Fault: partners by parity of rank and step, which need not name each other if ranks are odd.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: mismatched partners
 * Ranks: 2 0
 */
#include "mpilab.h"

MPILAB_ALLGATHER(partner_by_parity)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 0; step < size && err == MPI_SUCCESS; step++) {
        const int right = (rank + 1) % size, left = (rank - 1 + size) % size;
        const int partner = (rank + step) % 2 == 0 ? right : left;
        void *own = block(recvbuf, rank, recvcount, recvtype);
        void *whose = block(recvbuf, partner, recvcount, recvtype);
        err = MPI_Sendrecv(own, recvcount, recvtype, partner, TAG, whose, /* <- rank 2 */
                           recvcount, recvtype, partner, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
