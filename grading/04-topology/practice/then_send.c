#include "mpilab.h"
#include "splitting.h"
#include <stdlib.h>

int gather_then_send(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int rank, size, me, peers, type_size, nodes = 0, position = 0;
    MPI_Comm node, leaders = MPI_COMM_NULL;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int key = (rank - root + size) % size; /* the root comes first, wherever it is */
    int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &node);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &peers);
    err = MPI_Comm_split(comm, me == 0 ? 0 : MPI_UNDEFINED, key, &leaders);
    if (leaders != MPI_COMM_NULL && err == MPI_SUCCESS)
        MPI_Comm_size(leaders, &nodes);

    /* At the root, only the receive arguments count. A packed block is as long as its data. */
    MPI_Type_size(rank == root ? recvtype : sendtype, &type_size);
    const int bytes = type_size * (rank == root ? recvcount : sendcount);

    /* who: the ranks of this node, as numbered in comm. held: room for a message with any node's
     * blocks, preceded by the ranks that they come from. */
    int *const who = malloc(sizeof(int) * (size_t)size);
    const int most = (bytes + (int)sizeof(int)) * size;
    char *const held = malloc((size_t)most + 1);
    if (err == MPI_SUCCESS && (who == NULL || held == NULL))
        err = MPI_ERR_NO_MEM;
    if (err == MPI_SUCCESS)
        err = ranks_in(node, peers, comm, who);

    if (me > 0 && err == MPI_SUCCESS) {
        err = MPI_Send(sendbuf, sendcount, sendtype, 0, TAG, node);
    } else if (rank != root && err == MPI_SUCCESS) {
        err = MPI_Pack(who, peers, MPI_INT, held, most, &position, comm);
        if (err == MPI_SUCCESS)
            err = MPI_Pack(sendbuf, sendcount, sendtype, held, most, &position, comm);
        for (int q = 1; q < peers && err == MPI_SUCCESS; q++, position += bytes)
            err = MPI_Recv(held + position, bytes, MPI_PACKED, q, TAG, node, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(held, position, MPI_PACKED, 0, TAG, leaders);
    } else if (err == MPI_SUCCESS) {
        err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
        for (int q = 1; q < peers && err == MPI_SUCCESS; q++)
            err = MPI_Recv(block(recvbuf, who[q], recvcount, recvtype), recvcount, recvtype, q, TAG,
                           node, MPI_STATUS_IGNORE);
        for (int k = 1; k < nodes && err == MPI_SUCCESS; k++) {
            MPI_Status status;
            int length = 0;
            err = MPI_Recv(held, most, MPI_PACKED, k, TAG, leaders, &status);
            MPI_Get_count(&status, MPI_PACKED, &length);
            const int there = length / (bytes + (int)sizeof(int));
            position = 0;
            if (err == MPI_SUCCESS)
                err = MPI_Unpack(held, length, &position, who, there, MPI_INT, comm);
            for (int i = 0; i < there && err == MPI_SUCCESS; i++)
                err =
                    MPI_Unpack(held, length, &position, block(recvbuf, who[i], recvcount, recvtype),
                               recvcount, recvtype, comm);
        }
    }

    free(held), free(who);
    if (leaders != MPI_COMM_NULL)
        MPI_Comm_free(&leaders);
    MPI_Comm_free(&node);
    return err;
}
