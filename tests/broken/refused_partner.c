/* Fault: rank ^ dist is not a rank where the number of ranks is not a power of two.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: a rank that does not exist
 * Ranks: 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(refused_partner)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int dist = 1; dist < size; dist *= 2) {
        int partner = rank ^ dist;
        int first = rank / dist * dist;
        int count = first + dist > size ? size - first : dist;
        void *out = block(recvbuf, first, recvcount, recvtype);
        if (partner < size)
            err = MPI_Send(out, count * recvcount, recvtype, partner, TAG, comm);
        int theirs = partner < size ? partner / dist * dist : rank;
        int expected = theirs + dist > size ? size - theirs : dist;
        err = MPI_Recv(block(recvbuf, theirs, recvcount, recvtype), /* <- ranks 1 2 */
                       expected * recvcount, recvtype, partner, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
