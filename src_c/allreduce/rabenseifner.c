/* Rabenseifner's allreduce: reduce-scatter by recursive halving, then allgather by recursive
 * doubling.
 *
 * In each step of the first part, ranks swap halves of what they have, and reduce the half that
 * they keep; the second part gathers the blocks in the reverse order. This needs a power of two:
 * let C be the largest one not above P; beforehand, each rank from C upward sends its data to
 * rank - C, and it gets the result from there.
 *
 *   round 1                round 2               round 3               round 4            P = 4,
 *   0 -cd-> 2  2 -ab-> 0   0 -b-> 1  1 -a-> 0    0 -a-> 1  1 -b-> 0    0 -ab-> 2  2 -cd-> 0
 *   1 -cd-> 3  3 -ab-> 1   2 -d-> 3  3 -c-> 2    2 -c-> 3  3 -d-> 2    1 -ab-> 3  3 -cd-> 1
 *
 * Rounds:   2 * floor_log2(P) + (0 if P == 2 ** floor_log2(P) else 2)
 * Messages: 2 * 2 ** floor_log2(P) * floor_log2(P) + 2 * (P - 2 ** floor_log2(P))
 * Bytes:    2 * (P - 1) * m
 * Cost: 2 log2(P) α + 2 (P-1)/P mβ + (P-1)/P mγ for a power of two, with γ per byte reduced; for
 * other P, 2α + 2mβ + mγ more: best for long messages. Operations that do not commute are left to
 * recursive doubling.
 * Source: Rabenseifner (2004); Thakur, Rabenseifner, Gropp (2005), section 4.5.
 */
#include "../common/tree/blocks.h"

enum { ROOT = 0 };

MPILAB_ALLREDUCE(rabenseifner)
{
    int commutes, rank, size;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return allreduce_recursive_doubling(sendbuf, recvbuf, count, datatype, op, comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int core = mpilab_power_of_two(size);

    int err = mpilab_reduce_blocks(sendbuf, recvbuf, count, datatype, op, ROOT, comm);
    if (err == MPI_SUCCESS && rank >= core)
        return MPI_Recv(recvbuf, count, datatype, rank - core, TAG, comm, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err = mpilab_double_blocks(recvbuf, count, datatype, core, ROOT, comm);
    if (err == MPI_SUCCESS && rank + core < size)
        err = MPI_Send(recvbuf, count, datatype, rank + core, TAG, comm);
    return err;
}
