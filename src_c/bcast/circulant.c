/* Broadcast on circulant graphs, level by level: among the leaders of the groups, then of the nodes
 * of each group, then on each node.
 *
 * On a level of p ranks, let q = ⌈log2 p⌉. In round k of every q rounds, rank v (counted from the
 * leader) sends to v + skip[k] and receives from v - skip[k]: a different segment in every round.
 * So S segments take S + q - 1 rounds, the minimum for any algorithm that sends and receives one
 * segment at a time. Each rank computes which segments it sends, without communication.
 *
 *   round 1     round 2                 round 3                 round 4
 *   0 -a-> 3    0 -b-> 1   3 -a-> 4     0 -b-> 2   4 -a-> 1     0 -b-> 3   1 -b-> 4   4 -a-> 2
 *
 *   5 ranks on one node, skips 1 2 3, here used from 3 on; S = 2 segments a, b, root 0
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default 16 KiB)
 * Rounds:   circulant_rounds(G, S) + circulant_rounds(M // G, S) + circulant_rounds(Q, S)
 *           on G groups of M/G nodes of Q ranks; circulant_rounds(p, S) is 0 if
 *           p = 1, else ceil_log2(p) + S - 1, the fewest that there can be on one node
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Between nodes:  (M - 1) * m
 * Between groups: (G - 1) * m
 * Cost: (⌈log2 p⌉ + S - 1)(α + (m/S) β) a level, least for S = √((⌈log2 p⌉ - 1) m β / α): as for a
 * chain, mβ remains for long messages; but the pipe is full after ⌈log2 p⌉ rounds, not p - 1.
 * Source: Träff (2024), "Optimal broadcast schedules in logarithmic time ...", arXiv 2407.18004;
 * the broadcast from memory. One level after the other is our own addition.
 */
#include "../common/tree/circulant.h"
#include "../common/topology/topology.h"

enum { SEGMENT_BYTES = 16384 };

/* The segments of one message, among the ranks of one level. */
struct level {
    const struct mpilab_members *members;
    const struct mpilab_segments *cut;
    void *buffer;
    int count;
    MPI_Datatype datatype;
    MPI_Comm comm;
};

/* A message in one direction in one round: `rank` is MPI_PROC_NULL where there is none. */
struct transfer {
    int rank, count;
    void *segment;
};

/* Segments past the last one are the last one, so all ranks get it in the last rounds. */
static struct transfer transfer_of(const struct level *level, int segment, int member)
{
    const int last = level->cut->pieces - 1;
    const int index = segment < last ? segment : last;
    if (segment < 0)
        return (struct transfer){MPI_PROC_NULL, 0, level->buffer};
    return (struct transfer){level->members->rank[member],
                             mpilab_piece(level->cut, index, level->count),
                             block(level->buffer, index, level->cut->elements, level->datatype)};
}

static int broadcast_on(const struct level *level)
{
    enum { NOTHING = -1 };
    const int self = level->members->self, size = level->members->size;
    if (self < 0 || size == 1)
        return MPI_SUCCESS;
    struct mpilab_circulant schedule;
    mpilab_circulant_schedule(self, size, &schedule);
    const int rounds = schedule.rounds, segments = level->cut->pieces;

    /* The last phase is complete, so the first one may start in the middle. */
    const int skipped = (rounds - (segments - 1) % rounds) % rounds;
    int err = MPI_SUCCESS;
    for (int i = skipped; i < skipped + rounds + segments - 1 && err == MPI_SUCCESS; i++) {
        const int k = i % rounds, done = i - k - skipped;
        const int right = (int)(((long)self + schedule.skip[k]) % size);
        const int left = (int)(((long)self - schedule.skip[k] + size) % size);
        const struct transfer to =
            transfer_of(level, right == 0 ? NOTHING : schedule.send[k] + done, right);
        const struct transfer from =
            transfer_of(level, self == 0 ? NOTHING : schedule.receive[k] + done, left);
        err = MPI_Sendrecv(to.segment, to.count, level->datatype, to.rank, TAG, from.segment,
                           from.count, level->datatype, from.rank, TAG, level->comm,
                           MPI_STATUS_IGNORE);
    }
    return err;
}

MPILAB_BCAST(circulant)
{
    const long segment =
        mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : SEGMENT_BYTES;
    const struct mpilab_segments cut = mpilab_cut(count, datatype, segment);
    const struct mpilab_levels *levels;
    int err = mpilab_levels_of(comm, root, &levels);
    if (err != MPI_SUCCESS)
        return err;
    const struct mpilab_members *const down[] = {&levels->groups, &levels->group_nodes,
                                                 &levels->node};
    for (int i = 0; i < 3 && err == MPI_SUCCESS; i++)
        err = broadcast_on(&(struct level){down[i], &cut, buffer, count, datatype, comm});
    return err;
}
