/* Fault: memcpy is given a number of elements where it wants bytes: a quarter of the own block.
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Ranks: 0 1 2
 */
#include "mpilab.h"
#include <string.h>

int allgather_memcpy_counts_elements(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                     void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                     MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    void *own = block(recvbuf, rank, recvcount, recvtype);
    if (sendbuf != MPI_IN_PLACE)
        memcpy(own, sendbuf, (size_t)sendcount);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        err = MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, TAG,
                           block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source,
                           TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
