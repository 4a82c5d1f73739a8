/* Non-blocking allgather of all pairs at once.
 *
 * Every rank sends its own block to every other rank, and posts a receive for the block of every
 * other rank, before it waits for any of them. Receives are posted first, so that no message
 * arrives before its receive at a rank that is ready for it. Each rank starts with its right
 * neighbor: if all started with rank 0, rank 0 would be flooded. A rank sends its own block from
 * the caller's buffer: a fresh copy would still be only in this core's cache.
 *
 *   round 1                                        P = 4, number = block sent
 *   0 -0-> 1   0 -0-> 2   0 -0-> 3
 *   1 -1-> 2   1 -1-> 3   1 -1-> 0
 *   2 -2-> 3   2 -2-> 0   2 -2-> 1
 *   3 -3-> 0   3 -3-> 1   3 -3-> 2
 *
 * Rounds:   0 if P == 1 else 1
 * Messages: P * (P - 1)
 * Bytes:    P * (P - 1) * m
 * Cost: (P-1)(α + mβ) with one port per rank, and α + (P-1)mβ if start-ups overlap. No rank waits
 * for another rank's progress, but the P(P-1) messages share the network at the same time.
 * Source: the linear non-blocking algorithm, as MPICH's "tsp linear" and Open MPI's "linear".
 */
#include "mpilab.h"
#include <stdlib.h>

int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                              void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;

    int started = 0;
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int step = 1; step < size && err == MPI_SUCCESS; step++, started++) {
        const int source = (rank - step + size) % size;
        err = MPI_Irecv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source,
                        TAG, comm, &requests[started]);
    }
    const int in_place = sendbuf == MPI_IN_PLACE;
    const void *own = in_place ? block(recvbuf, rank, recvcount, recvtype) : sendbuf;
    for (int step = 1; step < size && err == MPI_SUCCESS; step++, started++) {
        const int dest = (rank + step) % size;
        err = MPI_Isend(own, in_place ? recvcount : sendcount, in_place ? recvtype : sendtype, dest,
                        TAG, comm, &requests[started]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}
