/* Dissemination barrier.
 *
 * In step i each rank sends to rank + 2^i and waits for rank - 2^i: after it, each knows that it
 * and the 2^(i+1) - 1 ranks to its left have entered. After ⌈log2 P⌉ steps, these are all ranks,
 * for any P.
 *
 *   round 1    round 2                                  P = 4
 *   0 -> 1     0 -> 2
 *   1 -> 2     1 -> 3
 *   2 -> 3     2 -> 0
 *   3 -> 0     3 -> 1
 *
 * Rounds:   ceil_log2(P)
 * Messages: P * ceil_log2(P)
 * Bytes:    0
 * Cost: ⌈log2 P⌉ α: the fewest rounds possible, for any P.
 * Source: Hensgen, Finkel, Manber (1988); Open MPI 5, coll/base, "bruck".
 */
#include "mpilab.h"

MPILAB_BARRIER(dissemination)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    int err = MPI_SUCCESS;
    for (long long distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (int)((rank + distance) % size);
        const int source = (int)((rank - distance + size) % size);
        err = MPI_Sendrecv(NULL, 0, MPI_BYTE, dest, TAG, NULL, 0, MPI_BYTE, source, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    return err;
}
