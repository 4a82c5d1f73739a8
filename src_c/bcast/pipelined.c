/* Pipelined broadcast by levels: a chain over the groups, a chain over the nodes of each group, a
 * binomial tree within each node, all of them busy at once.
 *
 * The message travels in segments. Every link between two groups or nodes carries each of them once
 * in each direction, so that once the pipeline is full the slowest link sets the pace, and its time
 * hides that of the faster ones. Receives are posted ahead, and up to four sends of a rank are in
 * progress: a slow link does not delay a fast one.
 *
 *   groups {0 1 2 3} {4 5 6 7} {8 9 10 11}, two ranks a node, root 0, segments a, b
 *
 *       0 ==> 4 ==> 8        => between groups     round 1   0 -ab-> 4   0 -ab-> 2   0 -ab-> 1
 *       |\    |\    |\                             round 2   4 -ab-> 8   4 -ab-> 6   4 -ab-> 5
 *       | 1   | 5   | 9                                      2 -ab-> 3
 *       2-3   6-7   10-11                          round 3   8 -ab-> 10   8 -ab-> 9   6 -ab-> 7
 *                                                  round 4   10 -ab-> 11
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default 16 KiB)
 * Rounds:   G - 1 + M // G - 1 + floor_log2(Q) + (S - 1) // 4 if P > 1 else 0
 *           on G groups of M/G nodes of Q ranks; four segments leave a rank in one round
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (M - 1) * m
 * Between groups: (G - 1) * m
 * Cost: (G - 1 + S - 1)(α + (m/S) β) with the α and β between groups, and M/G - 1 + ⌈log2 Q⌉ quick
 * steps: mβ remains for long messages, as if there were one other group. For a few groups: the time
 * to fill the pipeline grows with their number.
 * Source: Bijlani, Raol (2021), "a pipelined optimization" (which overlaps two levels by
 * MPI_Ibcast); the chains: Watts, van de Geijn (1995).
 */
#include "../common/topology/topology.h"

/* Below 64 KiB, from which size Open MPI asks the receiver before it sends over TCP. */
enum { SEGMENT_BYTES = 16384 };

MPILAB_BCAST(pipelined)
{
    const long segment =
        mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : SEGMENT_BYTES;
    const struct mpilab_segments cut = mpilab_cut(count, datatype, segment);
    struct mpilab_tree tree;
    const int err = mpilab_level_chains(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_stream_down(&tree, buffer, count, datatype, &cut, comm);
}
