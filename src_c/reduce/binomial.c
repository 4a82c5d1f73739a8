/* Binomial reduce.
 *
 * The binomial broadcast in reverse: each rank receives the results of its children, the smallest
 * subtree first, and sends its own up.
 *
 *   round 1                                round 2             round 3              P = 8, root 0
 *   1 -> 0   3 -> 2   5 -> 4   7 -> 6      2 -> 0   6 -> 4     4 -> 0
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(P) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: ⌈log2 P⌉ (α + mβ + mγ) with γ per byte reduced: best for short messages. Operations that do
 * not commute are left to the in-order binary tree.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4.4.
 */
#include "../common/tree/tree.h"

MPILAB_REDUCE(binomial)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    struct mpilab_tree tree;
    const int err = mpilab_knomial_tree(2, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_reduce_along(&tree, sendbuf, recvbuf, count, datatype, op,
                               mpilab_tuning.segment_bytes, comm);
}
