/* The schedules of Träff for round-optimal broadcast on circulant graphs.
 *
 * Repeatedly halving `size`, rounded up, gives the skips. Every rank but 0 is a sum of distinct
 * skips, found by taking the largest that fits at each step; the index of the last one is the
 * rank's *base block*: the block it gets in the first phase, along a binomial tree of these sums.
 *
 *   size 9, skips 1 2 3 5 (9)       rank        1  2  3  4  5  6  7  8
 *                                   base block  0  1  2  0  3  0  1  2      4 = 3+1, 8 = 5+3
 *
 * In round k of a later phase, a rank receives from the rank skip[k] below it. It gets the base
 * block of that rank, or of one farther below, such that in each phase it gets its own base block
 * and every other one once, and never one that the sender does not have yet. The search goes
 * through the sums of skips from the highest down, and takes each block the first time it comes up.
 *
 * Source: Träff (2024), "Optimal broadcast schedules in logarithmic time with applications to
 * broadcast, all-broadcast, reduction and all-reduction", arXiv 2407.18004, algorithm for the
 * receive schedule. There the send schedule is computed in the same time; here it is taken from the
 * receive schedules of the ranks that the rank sends to.
 */
#include "circulant.h"

static void find_skips(int size, struct mpilab_circulant *schedule)
{
    int rounds = 0;
    while (rounds < MPILAB_MOST_ROUNDS - 1 && 1L << rounds < size)
        rounds++;
    schedule->rounds = rounds;
    schedule->skip[rounds] = size;
    for (int k = rounds; k > 0; k--)
        schedule->skip[k - 1] = schedule->skip[k] / 2 + schedule->skip[k] % 2;
}

/* `rounds` means none: rank 0 has no base block. */
static int base_block(int rank, const struct mpilab_circulant *schedule)
{
    for (int k = schedule->rounds - 1; k >= 0 && rank > 0; k--) {
        if (rank == schedule->skip[k])
            return k;
        if (rank > schedule->skip[k])
            rank -= schedule->skip[k];
    }
    return schedule->rounds;
}

struct search {
    const struct mpilab_circulant *schedule;
    long rank, latest; /* ranks counted beyond `size`: those of this phase, and of the one before */
    int is_taken[MPILAB_MOST_ROUNDS + 1];
    int found, block[MPILAB_MOST_ROUNDS];
};

/* Extend `sum` by skips `k` and below; each rank found is below the latest one. */
static void look(struct search *search, long sum, int k)
{
    const struct mpilab_circulant *const schedule = search->schedule;
    const int *const skip = schedule->skip;
    for (; k >= 0 && search->found < schedule->rounds; k--) {
        const long next = sum + skip[k];
        if (search->is_taken[k] || next > search->rank - skip[search->found] ||
            next >= search->latest)
            continue;
        if (next <= search->rank - skip[search->found + 1])
            look(search, next, k - 1);
        if (search->found == schedule->rounds || sum > search->rank - skip[search->found + 1])
            return;
        search->latest = next;
        search->is_taken[k] = 1;
        search->block[search->found++] = k;
    }
}

static void find_receives(int rank, const struct mpilab_circulant *schedule,
                          int receive[MPILAB_MOST_ROUNDS])
{
    const int size = schedule->skip[schedule->rounds], own = base_block(rank, schedule);
    struct search search = {.schedule = schedule, .rank = (long)rank + size, .latest = 2L * size};
    search.is_taken[own] = 1;
    look(&search, 0, schedule->rounds);
    /* Skip `rounds` leads to rank 0, which sends this rank's own base block in this phase. */
    for (int k = 0; k < schedule->rounds; k++)
        receive[k] = search.block[k] == schedule->rounds ? own : search.block[k] - schedule->rounds;
}

void mpilab_circulant_schedule(int rank, int size, struct mpilab_circulant *schedule)
{
    int theirs[MPILAB_MOST_ROUNDS];
    find_skips(size, schedule);
    find_receives(rank, schedule, schedule->receive);
    for (int k = 0; k < schedule->rounds; k++) {
        find_receives((int)(((long)rank + schedule->skip[k]) % size), schedule, theirs);
        schedule->send[k] = theirs[k];
    }
}
