/* Non-blocking allgather through a root: gather to rank 0, which then sends everything to all.
 *
 * Every rank sends its block to rank 0. When rank 0 has them all, it sends the whole receive buffer
 * to each other rank. No rank waits for one message before it starts the next.
 *
 *   round 1                       round 2                           P = 4
 *   1 -1-> 0                      0 -0123-> 1
 *   2 -2-> 0                      0 -0123-> 2
 *   3 -3-> 0                      0 -0123-> 3
 *
 * Rounds:   0 if P == 1 else 2
 * Messages: 2 * (P - 1)
 * Bytes:    (P - 1) * m + (P - 1) * P * m
 * Cost: 2(P-1)α + (P-1)(P+1)mβ at rank 0, through which all data goes: few messages, so good for
 * short blocks and few ranks; rank 0 is the bottleneck for everything else.
 * Source: the linear gather and the linear broadcast of Open MPI (coll/base), combined.
 */
#include "mpilab.h"
#include <stdlib.h>

enum { ROOT = 0 };

static int at_root(void *recvbuf, int recvcount, MPI_Datatype recvtype, int size, MPI_Comm comm)
{
    const int others = size - 1;
    MPI_Request *requests = malloc((size_t)others * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;

    int err = MPI_SUCCESS, started = 0;
    for (int rank = 1; rank < size && err == MPI_SUCCESS; rank++, started++)
        err = MPI_Irecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, rank, TAG,
                        comm, &requests[started]);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);

    MPI_Datatype everything = MPI_DATATYPE_NULL;
    if (err == MPI_SUCCESS)
        err = wrapped_run_type(0, size, size, recvcount, recvtype, &everything);
    started = 0;
    for (int rank = 1; rank < size && err == MPI_SUCCESS; rank++, started++)
        err = MPI_Isend(recvbuf, 1, everything, rank, TAG, comm, &requests[started]);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);

    if (everything != MPI_DATATYPE_NULL)
        MPI_Type_free(&everything);
    free(requests);
    return err;
}

static int at_leaf(void *recvbuf, int recvcount, MPI_Datatype recvtype, int rank, int size,
                   MPI_Comm comm)
{
    MPI_Datatype everything;
    int err = wrapped_run_type(0, size, size, recvcount, recvtype, &everything);
    if (err != MPI_SUCCESS)
        return err;

    MPI_Request request;
    err = MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, ROOT, TAG, comm,
                    &request);
    /* The answer overwrites the block being sent, so the send must be over first. */
    if (err == MPI_SUCCESS)
        err = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err = MPI_Irecv(recvbuf, 1, everything, ROOT, TAG, comm, &request);
    if (err == MPI_SUCCESS)
        err = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&everything);
    return err;
}

int allgather_nonblocking_gather_bcast(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                       void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                       MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    if (err != MPI_SUCCESS || size == 1)
        return err;
    return rank == ROOT ? at_root(recvbuf, recvcount, recvtype, size, comm)
                        : at_leaf(recvbuf, recvcount, recvtype, rank, size, comm);
}
