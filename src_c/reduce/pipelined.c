/* Pipelined reduce by levels: a binomial tree within each node, a chain over the nodes of each
 * group, a chain over the groups, all of them busy at once.
 *
 * The pipelined broadcast backwards: every link between two groups or nodes carries each segment
 * once, already reduced, so that once the pipeline is full the slowest link sets the pace. Receives
 * are posted four segments ahead, and up to four are on their way up.
 *
 *   groups {0 1 2 3} {4 5 6 7} {8 9 10 11}, two ranks a node, root 0, segments a, b
 *
 *       0 <== 4 <== 8        <= between groups     round 1   1 -ab-> 0   5 -ab-> 4   9 -ab-> 8
 *       |\    |\    |\                                       3 -ab-> 2   7 -ab-> 6   11 -ab-> 10
 *       | 1   | 5   | 9                            round 2   2 -ab-> 0   6 -ab-> 4   10 -ab-> 8
 *       2-3   6-7   10-11                          round 3   8 -ab-> 4
 *                                                  round 4   4 -ab-> 0
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default 16 KiB)
 * Rounds:   G - 1 + M // G - 1 + floor_log2(Q) + (S - 1) // 4 if P > 1 else 0
 *           on G groups of M/G nodes of Q ranks; four segments leave a rank in one round
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (M - 1) * m
 * Between groups: (G - 1) * m
 * Cost: (G - 1 + S - 1)(α + (m/S)(β + γ)) with the α and β between groups and γ per byte reduced,
 * and M/G - 1 + ⌈log2 Q⌉ quick steps: m(β + γ) remains for long messages. A rank holds eight
 * segments for each of its children. Operations that do not commute are left to the in-order binary
 * tree, which ignores levels.
 * Source: our own mirror image of the pipelined broadcast; the chains: Watts, van de Geijn (1995).
 */
#include "../common/topology/topology.h"

/* Below 64 KiB, from which size Open MPI asks the receiver before it sends over TCP. */
enum { SEGMENT_BYTES = 16384 };

MPILAB_REDUCE(pipelined)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return reduce_in_order_binary(sendbuf, recvbuf, count, datatype, op, root, comm);

    const long segment =
        mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : SEGMENT_BYTES;
    const struct mpilab_segments cut = mpilab_cut(count, datatype, segment);
    struct mpilab_tree tree;
    const int err = mpilab_level_chains(root, comm, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_stream_up(&tree, sendbuf, recvbuf, count, datatype, op, &cut, comm);
}
