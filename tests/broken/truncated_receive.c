/* Fault: from the second step on two blocks come at a time, but there is room for one.
 * Case: ranks=4 count=4
 * Diagnosis: mpi-error
 * Pattern: message truncated
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

int allgather_truncated_receive(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int mask = 1; mask < size && err == MPI_SUCCESS; mask *= 2) {
        const int partner = rank ^ mask;
        void *mine = block(recvbuf, rank & ~(mask - 1), recvcount, recvtype);
        void *theirs = block(recvbuf, partner & ~(mask - 1), recvcount, recvtype);
        err = MPI_Sendrecv(mine, mask * recvcount, recvtype, partner, TAG, /* <- ranks 0 1 2 3 */
                           theirs, recvcount, recvtype, partner, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
