%%kernel allgather_ring_remapped
// Fault: the ring of ranks, wherever they are.
#include "mpilab.h"
#include <stdlib.h>

int allgather_ring_remapped(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int self = 0;
    int *const process = malloc((size_t)size * sizeof *process);
    if (process == NULL)
        return MPI_ERR_NO_MEM;
    for (int v = 0; v < size; v++)
        process[v] = v;
    self = rank;

    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int right = process[(self + 1) % size];
        const int left = process[(self - 1 + size) % size];
        const int outgoing = process[(self - round + 1 + size) % size];
        const int incoming = process[(self - round + size) % size];
        err = MPI_Sendrecv(block(recvbuf, outgoing, recvcount, recvtype), recvcount, recvtype,
                           right, TAG, block(recvbuf, incoming, recvcount, recvtype), recvcount,
                           recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    free(process);
    return err;
}
