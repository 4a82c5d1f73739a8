/* Fault: a tag of -1 ("so that it differs from all others") is not a valid tag.
 * Case: ranks=2 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid tag
 * Ranks: 0 1
 */
#include "mpilab.h"

#define TAG_BLOCK -1

int allgather_negative_tag(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        void *to = block(recvbuf, source, recvcount, recvtype);
        err = MPI_Sendrecv(own, recvcount, recvtype, dest, TAG_BLOCK, /* <- ranks 0 1 */
                           to, recvcount, recvtype, source, TAG_BLOCK, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
