/* Recursive doubling barrier.
 *
 * In step i ranks that differ in bit i swap empty messages: after it, each knows that the 2^(i+1)
 * ranks of its group have entered. This needs a power of two. Let C be the largest one not above P:
 * beforehand, each rank from C upward reports to rank - C, which releases it at the end.
 *
 *   round 1              round 2                        P = 4
 *   0 <-> 1   2 <-> 3    0 <-> 2   1 <-> 3
 *
 *   round 1   round 2    round 3                        P = 3, C = 2
 *   2 -> 0    0 <-> 1    0 -> 2
 *
 * Rounds:   floor_log2(P) + (0 if P == 2 ** floor_log2(P) else 2)
 * Messages: 2 ** floor_log2(P) * floor_log2(P) + 2 * (P - 2 ** floor_log2(P))
 * Bytes:    0
 * Cost: log2(P) α for a power of two; otherwise two more rounds.
 * Source: Open MPI 5, coll/base, "recursive_doubling"; Hensgen, Finkel, Manber (1988).
 */
#include "../common/tree/blocks.h"

MPILAB_BARRIER(recursive_doubling)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int core = mpilab_power_of_two(size);

    if (rank >= core)
        return MPI_Sendrecv(NULL, 0, MPI_BYTE, rank - core, TAG, NULL, 0, MPI_BYTE, rank - core,
                            TAG, comm, MPI_STATUS_IGNORE);

    const int folded = rank + core < size ? rank + core : MPI_PROC_NULL;
    int err = MPI_Recv(NULL, 0, MPI_BYTE, folded, TAG, comm, MPI_STATUS_IGNORE);
    for (int distance = 1; distance < core && err == MPI_SUCCESS; distance *= 2) {
        const int partner = rank ^ distance;
        err = MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, TAG, NULL, 0, MPI_BYTE, partner, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Send(NULL, 0, MPI_BYTE, folded, TAG, comm);
    return err;
}
