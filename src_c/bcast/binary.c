/* Broadcast down a binary tree, in segments.
 *
 * Rank v (counted from the root) sends to 2v+1 and 2v+2. With another fan-out K it has K children.
 *
 *   round 1            round 2                              P = 6, K = 2, one segment, root 0
 *   0 -> 1   0 -> 2    1 -> 3   1 -> 4   2 -> 5
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one), fanout (K; default 2)
 * Rounds:   kary_depth(P, K) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: (⌊log2 P⌋ + S - 1)(α + 2 (m/S) β): no rank serves more than two, so it pipelines well, but
 * every byte leaves an inner rank twice.
 * Source: Open MPI 5, coll/base, "binary"; Nuriyev, Lastovetsky (2020), section 3.
 */
#include "../common/tree/tree.h"

MPILAB_BCAST(binary)
{
    const int fanout = mpilab_tuning.fanout > 0 ? mpilab_tuning.fanout : 2;
    struct mpilab_tree tree;
    const int err = mpilab_kary_tree(fanout, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
