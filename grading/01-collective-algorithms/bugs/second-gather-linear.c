%%kernel gather_binomial
// Fault: everybody sends to the root: right, but that is the linear gather.
#include "mpilab.h"

int gather_binomial(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Send(sendbuf, sendcount, sendtype, root, TAG, comm);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int other = 0; other < size && err == MPI_SUCCESS; other++)
        if (other != root)
            err = MPI_Recv(block(recvbuf, other, recvcount, recvtype), recvcount, recvtype, other,
                           TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
