/* Fault: blocks are as far apart as their data is long; MPI_Type_size leaves the holes out.
 * Case: ranks=3 count=4 datatype=vector
 * Diagnosis: wrong-result
 * Pattern: extent ignored
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_extent_ignored(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size, bytes;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_size(recvtype, &bytes);
    const MPI_Aint block_bytes = (MPI_Aint)bytes * recvcount;
    char *blocks = recvbuf;

    int err = MPI_SUCCESS;
    if (sendbuf != MPI_IN_PLACE)
        err = copy_local(sendbuf, sendcount, sendtype, blocks + rank * block_bytes, recvcount,
                         recvtype);
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        err = MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, TAG, blocks + source * block_bytes,
                           recvcount, recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
