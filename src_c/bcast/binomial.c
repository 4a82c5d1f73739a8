/* Binomial broadcast.
 *
 * In every round each rank that has the message sends it to one that has not: the number of ranks
 * that have it doubles.
 *
 *   round 1    round 2            round 3                             P = 8, root 0
 *   0 -> 4     0 -> 2   4 -> 6    0 -> 1   2 -> 3   4 -> 5   6 -> 7
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   ceil_log2(P) * S
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: ⌈log2 P⌉ (α + mβ), with S segments ⌈log2 P⌉ S (α + (m/S) β): best for short messages.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4.3.
 */
#include "../tree/tree.h"

MPILAB_BCAST(binomial)
{
    struct mpilab_tree tree;
    const int err = mpilab_knomial_tree(2, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
