/* k-nomial broadcast: a binomial tree of another radix.
 *
 * The parent of rank v (counted from the root) is v without its lowest digit that is not 0, in base
 * K. A rank that has received the message starts to send it to all its children at once, those with
 * the largest subtrees first.
 *
 *   round 1                               round 2                              P = 9, K = 3, root 0,
 *   0 -> 3   0 -> 6   0 -> 1   0 -> 2     3 -> 4   3 -> 5   6 -> 7   6 -> 8    one segment
 *
 * Tunables: radix (K; default 4), segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   knomial_depth(P, K) + S - 1 if P > 1 else 0
 *           where the tree is as deep as the most digits that are not 0 in a v < P, in base K
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: ⌈log_K P⌉ (α + (K-1) m β): a shallower tree than the binomial one, with more work for each
 * sender; good if starting a message costs much less than its latency.
 * Source: Open MPI 5, coll/base, "knomial"; Ruefenacht et al. (2017).
 */
#include "../common/tree/tree.h"

MPILAB_BCAST(knomial)
{
    const int radix = mpilab_tuning.radix > 0 ? mpilab_tuning.radix : 4;
    struct mpilab_tree tree;
    const int err = mpilab_knomial_tree(radix, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
