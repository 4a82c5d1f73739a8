%%kernel allgather_ring_remapped
// Fault: everybody sends before it receives.
#include "mpilab.h"
#include <stdlib.h>

/* Ranks 0, ..., count - 1 of `from`, as ranks of `to`. */
static int translate(MPI_Comm from, int count, MPI_Comm to, int *ranks)
{
    MPI_Group here, there;
    MPI_Comm_group(from, &here);
    MPI_Comm_group(to, &there);
    int err = MPI_SUCCESS;
    for (int i = 0; i < count && err == MPI_SUCCESS; i++)
        err = MPI_Group_translate_ranks(here, 1, &i, there, &ranks[i]);
    MPI_Group_free(&here);
    MPI_Group_free(&there);
    return err;
}

/* Who stands where in the ring: process[v] is the rank in `comm` of the process at place v; this
 * one is at place *self. Nodes follow each other by their lowest ranks. */
static int order_by_node(MPI_Comm comm, int size, int *process, int *self)
{
    int rank, lowest;
    MPI_Comm node = MPI_COMM_NULL, ring = MPI_COMM_NULL;
    MPI_Comm_rank(comm, &rank);

    int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    if (err == MPI_SUCCESS)
        err = translate(node, 1, comm, &lowest);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_split(comm, 0, lowest, &ring);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_rank(ring, self);
    if (err == MPI_SUCCESS)
        err = translate(ring, size, comm, process);
    if (node != MPI_COMM_NULL)
        MPI_Comm_free(&node);
    if (ring != MPI_COMM_NULL)
        MPI_Comm_free(&ring);
    return err;
}

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
    if (err == MPI_SUCCESS)
        err = order_by_node(comm, size, process, &self);

    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int right = process[(self + 1) % size];
        const int left = process[(self - 1 + size) % size];
        const int outgoing = process[(self - round + 1 + size) % size];
        const int incoming = process[(self - round + size) % size];
        err = MPI_Send(block(recvbuf, outgoing, recvcount, recvtype), recvcount, recvtype, right, TAG,
                       comm);
        if (err == MPI_SUCCESS)
            err = MPI_Recv(block(recvbuf, incoming, recvcount, recvtype), recvcount, recvtype, left,
                           TAG, comm, MPI_STATUS_IGNORE);
    }
    free(process);
    return err;
}
