/* Pairwise exchange allgather: rank ± 2^i.
 *
 * In step i each rank sends to rank + 2^i the blocks that it holds, and receives as many from
 * rank - 2^i, both in one MPI_Sendrecv: the number of its blocks doubles. Before step i a rank
 * holds the 2^i blocks that end with its own. Blocks are kept at their final places; a run of
 * blocks that passes the end of the buffer continues at its start, in the same message
 * (wrapped_run_type). If P is not a power of two, the last step sends only the P - 2^i blocks that
 * are still missing.
 *
 *   round 1        round 2                            P = 4, numbers = blocks sent
 *   0 -0-> 1       0 -30-> 2
 *   1 -1-> 2       1 -01-> 3
 *   2 -2-> 3       2 -12-> 0
 *   3 -3-> 0       3 -23-> 1
 *
 * Rounds:   ceil_log2(P)
 * Messages: P * ceil_log2(P)
 * Bytes:    P * (P - 1) * m
 * Cost: ⌈log2 P⌉ α + (P-1)mβ: the fewest rounds possible, and each byte is sent only once. Partners
 * are far apart in the later rounds, which carry most of the bytes.
 * Source: Bruck, Ho, Kipnis, Upfal, Weathersby (1997), without the rotation of blocks.
 */
#include "mpilab.h"

int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                       int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (rank + distance) % size;
        const int source = (rank - distance + size) % size;
        const int blocks = distance < size - distance ? distance : size - distance;
        MPI_Datatype outgoing = MPI_DATATYPE_NULL, incoming = MPI_DATATYPE_NULL;

        err = wrapped_run_type((rank - blocks + 1 + size) % size, blocks, size, recvcount, recvtype,
                               &outgoing);
        if (err == MPI_SUCCESS)
            err = wrapped_run_type((source - blocks + 1 + size) % size, blocks, size, recvcount,
                                   recvtype, &incoming);
        if (err == MPI_SUCCESS)
            err = MPI_Sendrecv(recvbuf, 1, outgoing, dest, TAG, recvbuf, 1, incoming, source, TAG,
                               comm, MPI_STATUS_IGNORE);
        if (outgoing != MPI_DATATYPE_NULL)
            MPI_Type_free(&outgoing);
        if (incoming != MPI_DATATYPE_NULL)
            MPI_Type_free(&incoming);
    }
    return err;
}
