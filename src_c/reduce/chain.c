/* Reduce along several chains, in segments.
 *
 * The other ranks form K chains of (almost) equal length that end at the root. Each rank receives a
 * segment from the rank behind it, and sends the result on while it receives the next segment.
 *
 *   round 1              round 2              round 3         P = 5, K = 2, S = 2 segments a, b
 *   2 -a-> 1  4 -a-> 3   1 -a-> 0  3 -a-> 0
 *                        2 -b-> 1  4 -b-> 3   1 -b-> 0  3 -b-> 0
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one), fanout (K; default 4)
 * Rounds:   ceil_div(P - 1, K) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: (⌈(P-1)/K⌉ + S - 1)(α + K (m/S)(β + γ)) with γ per byte reduced: long chains need many
 * segments. Operations that do not commute are left to the in-order binary tree.
 * Source: Open MPI 5, coll/base, "chain".
 */
#include "../common/tree/tree.h"

MPILAB_REDUCE(chain)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    const int fanout = mpilab_tuning.fanout > 0 ? mpilab_tuning.fanout : 4;
    struct mpilab_tree tree;
    const int err = mpilab_chain(fanout, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_reduce_along(&tree, sendbuf, recvbuf, count, datatype, op,
                               mpilab_tuning.segment_bytes, comm);
}
