/* Fault: partners send to each other first; that works only as long as MPI buffers (not strict).
 * Case: ranks=4 count=4 strict
 * Diagnosis: deadlock
 * Pattern: sends that rely on buffering
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

/* Recursive doubling, for P = 2, 4, 8, ... */
int allgather_buffering_strict(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int mask = 1; mask < size; mask <<= 1) {
        int partner = rank ^ mask;
        int first = rank / mask * mask;
        int theirs = partner / mask * mask;
        void *from = block(recvbuf, first, recvcount, recvtype);
        void *to = block(recvbuf, theirs, recvcount, recvtype);
        MPI_Send(from, mask * recvcount, recvtype, partner, TAG, comm); /* <- ranks 0 1 2 3 */
        MPI_Recv(to, mask * recvcount, recvtype, partner, TAG, comm, MPI_STATUS_IGNORE);
    }
    return MPI_SUCCESS;
}
