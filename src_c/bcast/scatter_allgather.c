/* Broadcast as a binomial scatter and a recursive doubling allgather.
 *
 * The root cuts the message into blocks and scatters them; then ranks swap what they have with
 * partners at distance 1, 2, 4, ... until every rank has every block. This needs a power of two:
 * let C be the largest one not above P; each rank from C upward gets the whole message from
 * rank - C.
 *
 *   round 1       round 2               round 3                round 4              P = 4,
 *   0 -cd-> 2     0 -b-> 1   2 -d-> 3   0 -a-> 1   1 -b-> 0    0 -ab-> 2  2 -cd-> 0   root 0
 *                                       2 -c-> 3   3 -d-> 2    1 -ab-> 3  3 -cd-> 1
 *
 * Rounds:   2 * floor_log2(P) + (0 if P == 2 ** floor_log2(P) else 1)
 * Messages: P - 1 + 2 ** floor_log2(P) * floor_log2(P)
 * Bytes:    (P - 1) * m + binomial_hops(2 ** floor_log2(P), n) * e
 *           with n elements of e bytes: binomial_hops(C, n) is how many elements a scatter moves
 * Cost: 2 log2(P) α + 2 (P-1)/P m β for a power of two, and α + mβ more for other P: a long message
 * crosses a link twice, not log2(P) times as in the binomial tree.
 * Source: van de Geijn; Thakur, Rabenseifner, Gropp (2005), section 4.3; folding as in section 4.5.
 */
#include "../common/tree/blocks.h"

MPILAB_BCAST(scatter_allgather)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;
    const int core = mpilab_power_of_two(size);

    if (virtual_rank >= core)
        return MPI_Recv(buffer, count, datatype, (virtual_rank - core + root) % size, TAG, comm,
                        MPI_STATUS_IGNORE);

    int err = mpilab_scatter_blocks(buffer, count, datatype, core, root, comm);
    if (err == MPI_SUCCESS)
        err = mpilab_double_blocks(buffer, count, datatype, core, root, comm);
    if (err == MPI_SUCCESS && virtual_rank + core < size)
        err = MPI_Send(buffer, count, datatype, (virtual_rank + core + root) % size, TAG, comm);
    return err;
}
