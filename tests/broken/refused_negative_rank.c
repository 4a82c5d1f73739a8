/* Fault: (rank - i) % size is negative in C; -1 and -2 happen to mean something, -3 does not.
 * Case: ranks=4 count=4
 * Diagnosis: mpi-error
 * Pattern: a rank that does not exist
 * Ranks: 0
 */
#include "mpilab.h"

MPILAB_ALLGATHER(refused_negative_rank)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int i = 1; i < size; i++) {
        int to = (rank + i) % size;
        int from = (rank - i) % size;
        void *out = block(recvbuf, rank, recvcount, recvtype);
        void *in = block(recvbuf, (from + size) % size, recvcount, recvtype);
        err = MPI_Sendrecv(out, recvcount, recvtype, to, TAG, /* <- rank 0 */
                           in, recvcount, recvtype, from, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
