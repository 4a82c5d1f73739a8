/* Fault: in the last step as many blocks are wanted as are missing, which comes out negative.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid count
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_negative_count(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (rank - distance + size) % size, source = (rank + distance) % size;
        const int missing = size - 2 * distance; /* should be size - distance */
        void *in = block(recvbuf, source, recvcount, recvtype);
        void *out = block(recvbuf, rank, recvcount, recvtype);
        err = MPI_Sendrecv(out, missing * recvcount, recvtype, dest, TAG, /* <- ranks 0 1 2 */
                           in, missing * recvcount, recvtype, source, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    return err;
}
