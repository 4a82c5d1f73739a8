/* Broadcast as a binomial scatter and a ring allgather.
 *
 * The root cuts the message into P blocks and scatters them; then each rank passes on, to its right
 * neighbor, the block that it received last, until every rank has every block.
 *
 *   round 1      round 2              rounds 3, 4, 5                   P = 4, root 0, blocks a to d
 *   0 -cd-> 2    0 -b-> 1  2 -d-> 3   0 -a-> 1   0 -d-> 1   0 -c-> 1
 *                                     1 -b-> 2   1 -a-> 2   1 -d-> 2
 *                                     2 -c-> 3   2 -b-> 3   2 -a-> 3
 *                                     3 -d-> 0   3 -c-> 0   3 -b-> 0
 *
 * Rounds:   ceil_log2(P) + P - 1
 * Messages: (P - 1) * (P + 1)
 * Bytes:    (P - 1) * m + binomial_hops(P, n) * e
 *           with n elements of e bytes: binomial_hops(P, n) is how many elements the scatter moves
 * Cost: (⌈log2 P⌉ + P - 1) α + 2 (P-1)/P m β: more rounds than with recursive doubling, but only
 * neighbors communicate, and any P works: best for very long messages.
 * Source: Barnett et al. (1994); Thakur, Rabenseifner, Gropp (2005), section 4.3.
 */
#include "../common/tree/blocks.h"

MPILAB_BCAST(scatter_allgather_ring)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;
    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;

    int err = mpilab_scatter_blocks(buffer, count, datatype, size, root, comm);

    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int outgoing = (virtual_rank - round + 1 + size) % size;
        const int incoming = (virtual_rank - round + size) % size;
        const struct mpilab_window out = mpilab_window(outgoing, outgoing, size, count);
        const struct mpilab_window in = mpilab_window(incoming, incoming, size, count);
        err = MPI_Sendrecv(block(buffer, out.begin, 1, datatype), out.length, datatype, right, TAG,
                           block(buffer, in.begin, 1, datatype), in.length, datatype, left, TAG,
                           comm, MPI_STATUS_IGNORE);
    }
    return err;
}
