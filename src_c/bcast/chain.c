/* Broadcast along several chains, in segments.
 *
 * The other ranks form K chains of (almost) equal length. The root hands each segment to the first
 * rank of every chain; each rank passes a segment on while it receives the next one.
 *
 *   round 1               round 2               round 3         P = 5, K = 2, S = 2 segments a, b
 *   0 -a-> 1  0 -a-> 3    1 -a-> 2  3 -a-> 4
 *                         0 -b-> 1  0 -b-> 3    1 -b-> 2  3 -b-> 4
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one), fanout (K; default 4)
 * Rounds:   ceil_div(P - 1, K) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: (⌈(P-1)/K⌉ + S - 1)(α + K (m/S) β): long chains need many segments.
 * Source: Open MPI 5, coll/base, "chain"; Nuriyev, Lastovetsky (2020), section 3.
 */
#include "../common/tree/tree.h"

MPILAB_BCAST(chain)
{
    const int fanout = mpilab_tuning.fanout > 0 ? mpilab_tuning.fanout : 4;
    struct mpilab_tree tree;
    const int err = mpilab_chain(fanout, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
}
