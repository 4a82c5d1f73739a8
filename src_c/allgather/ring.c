/* Ring allgather.
 *
 * Each rank passes on, to its right neighbor, the block that it received last. After P-1
 * rounds every block has visited every rank.
 *
 *   round 1        round 2        round 3            P = 4, number = block sent
 *   0 -0-> 1       0 -3-> 1       0 -2-> 1
 *   1 -1-> 2       1 -0-> 2       1 -3-> 2
 *   2 -2-> 3       2 -1-> 3       2 -0-> 3
 *   3 -3-> 0       3 -2-> 0       3 -1-> 0
 *
 * Rounds:   P - 1
 * Messages: P * (P - 1)
 * Bytes:    P * (P - 1) * m
 * Cost: (P-1)(α + mβ) with m bytes a block. Every rank receives each byte once, so it is optimal in
 * bandwidth, and only neighbors communicate: best if neighbors share a node.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4.1.
 */
#include "mpilab.h"

int allgather_ring(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;

    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int outgoing = (rank - round + 1 + size) % size;
        const int incoming = (rank - round + size) % size;
        err = MPI_Sendrecv(block(recvbuf, outgoing, recvcount, recvtype), recvcount, recvtype,
                           right, TAG, block(recvbuf, incoming, recvcount, recvtype), recvcount,
                           recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
