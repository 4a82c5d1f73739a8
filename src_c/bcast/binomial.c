/* Binomial broadcast.
 *
 * A rank that has received the message starts to send it to all its children at once, the one with
 * the largest subtree first. While its messages leave one by one, children that have the message
 * serve others: each time, the number of ranks with the message doubles.
 *
 *   round 1                      round 2                      round 3         P = 8, root 0,
 *   0 -> 4   0 -> 2   0 -> 1     4 -> 6   4 -> 5   2 -> 3     6 -> 7          one segment
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(P) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: ⌈log2 P⌉ (α + mβ), because a rank's messages leave it one by one; (⌊log2 P⌋ + S - 1)(α +
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
