/* Fault: every rank sends all of its blocks before it receives any (strict).
 * Collective: alltoallv
 * Case: ranks=4 count=4 strict
 * Diagnosis: deadlock
 * Pattern: sends that rely on buffering
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

MPILAB_ALLTOALLV(sends_first)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    err = copy_local(block(sendbuf, sdispls[rank], 1, sendtype), sendcounts[rank], sendtype,
                     block(recvbuf, rdispls[rank], 1, recvtype), recvcounts[rank], recvtype);
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        int dest = (rank + step) % size;
        void *from = block(sendbuf, sdispls[dest], 1, sendtype);
        err = MPI_Send(from, sendcounts[dest], sendtype, dest, TAG, comm); /* <- ranks 0 1 2 3 */
    }
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        int source = (rank - step + size) % size;
        void *to = block(recvbuf, rdispls[source], 1, recvtype);
        err = MPI_Recv(to, recvcounts[source], recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
