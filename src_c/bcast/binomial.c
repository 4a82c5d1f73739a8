/* Binomial broadcast.
 *
 * A rank that has got the message starts to send it to all its children at once, the one with the
 * largest subtree first. While a rank serves its children one by one, those that are served serve
 * others: each time, the number of ranks that have the message doubles.
 *
 *   round 1                      round 2                      round 3         P = 8, root 0,
 *   0 -> 4   0 -> 2   0 -> 1     4 -> 6   4 -> 5   2 -> 3     6 -> 7          one segment
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(P) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: ⌈log2 P⌉ (α + mβ), as a rank's messages leave it one by one; (⌊log2 P⌋ + S - 1)(α +
 * ⌈log2 P⌉ (m/S) β) with S segments: best for short messages.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4.3.
 */
#include "../common/tree/tree.h"

MPILAB_BCAST(binomial)
{
    struct mpilab_tree tree;
    const int err = mpilab_knomial_tree(2, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
