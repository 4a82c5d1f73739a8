%%kernel alltoallv_by_leaders
// Fault: every pair of ranks exchanges directly: right, but there are no leaders.
#include "mpilab.h"

int alltoallv_by_leaders(const void *sendbuf, const int sendcounts[], const int sdispls[],
                         MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                         const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int step = 0; step < size && err == MPI_SUCCESS; step++) {
        const int to = (rank + step) % size, from = (rank - step + size) % size;
        err = MPI_Sendrecv(block(sendbuf, sdispls[to], 1, sendtype), sendcounts[to], sendtype, to,
                           TAG, block(recvbuf, rdispls[from], 1, recvtype), recvcounts[from],
                           recvtype, from, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
