/* Fault: what is sent in round i with tag i is awaited with tag i - 1.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: mismatched tags
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(tags_by_round)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;

    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        void *out = block(recvbuf, (rank - round + 1 + size) % size, recvcount, recvtype);
        void *in = block(recvbuf, (rank - round + size) % size, recvcount, recvtype);
        err = MPI_Sendrecv(out, recvcount, recvtype, right, round, /* <- ranks 0 1 2 */
                           in, recvcount, recvtype, left, round - 1, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
