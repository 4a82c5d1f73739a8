/* Pipelined broadcast: one chain, in segments.
 *
 * Every rank passes each segment on to its right neighbor while it receives the next one. Once the
 * pipeline is full, all links work at the same time.
 *
 *   round 1     round 2     round 3     round 4       P = 4, S = 2 segments a, b, root 0
 *   0 -a-> 1    1 -a-> 2    2 -a-> 3
 *               0 -b-> 1    1 -b-> 2    2 -b-> 3
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default 8 KiB)
 * Rounds:   P - 2 + S if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: (P - 2 + S)(α + (m/S) β), least for S = √((P-2) m β / α): then mβ remains for long
 * messages, as with a single receiver.
 * Source: Watts, van de Geijn (1995); Open MPI 5, coll/base, "pipeline".
 */
#include "../common/tree/tree.h"

enum { SEGMENT_BYTES = 8192 };

MPILAB_BCAST(pipeline)
{
    const long segment =
        mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : SEGMENT_BYTES;
    struct mpilab_tree tree;
    const int err = mpilab_chain(1, root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_bcast_along(&tree, buffer, count, datatype, segment, comm);
}
