%%kernel allgather_pairwise
// Fault: hides MPI_Allgather behind a macro.
#include "mpilab.h"
#include <stdlib.h>

int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    (void)rank, (void)size;
#define JOIN(a, b) a##b
    return JOIN(MPI_All, gather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
