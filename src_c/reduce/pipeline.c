/* Pipelined reduce: one chain, in segments.
 *
 * Every rank receives a segment from its right neighbor, and sends the result to its left one while
 * it receives the next segment. Once the pipeline is full, all ranks work at the same time.
 *
 *   round 1     round 2     round 3     round 4       P = 4, S = 2 segments a, b, root 0
 *   3 -a-> 2    2 -a-> 1    1 -a-> 0
 *               3 -b-> 2    2 -b-> 1    1 -b-> 0
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default 8 KiB)
 * Rounds:   P - 2 + S if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: (P - 2 + S)(α + (m/S)(β + γ)) with γ per byte reduced, least for about S = √((P-2) m (β +
 * γ) / α): best for long messages. Operations that do not commute are left to the in-order binary
 * tree.
 * Source: Open MPI 5, coll/base, "pipeline".
 */
#include "../common/tree/tree.h"

enum { SEGMENT_BYTES = 8192 };

MPILAB_REDUCE(pipeline)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    const long segment =
        mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : SEGMENT_BYTES;
    struct mpilab_tree tree;
    const int err = mpilab_chain(1, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_reduce_along(&tree, sendbuf, recvbuf, count, datatype, op, segment, comm);
}
