/* Fault: recursive doubling that skips partners that do not exist loses blocks if P is no 2^k.
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: blocks never written
 * Ranks: 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(doubling_skips_partners)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int mask = 1; mask < size && err == MPI_SUCCESS; mask *= 2) {
        const int partner = rank ^ mask;
        if (partner >= size)
            continue;
        const int mine = rank / mask * mask, theirs = partner / mask * mask;
        const int outgoing = mine + mask <= size ? mask : size - mine;
        const int incoming = theirs + mask <= size ? mask : size - theirs;
        err = MPI_Sendrecv(block(recvbuf, mine, recvcount, recvtype), outgoing * recvcount,
                           recvtype, partner, TAG, block(recvbuf, theirs, recvcount, recvtype),
                           incoming * recvcount, recvtype, partner, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
