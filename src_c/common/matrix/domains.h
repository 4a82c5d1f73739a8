/* Which rank reads what in a two-phase read: the elements of a file, cut into one *domain* for each
 * *aggregator*.
 *
 *   10 elements, 3 aggregators, 4 ranks       domain of     aggregator 0   1       2
 *                                             elements      0 1 2 3 | 4 5 6 | 7 8 9
 *                                             read by rank  0         1       2
 */
#ifndef MPILAB_DOMAINS_H
#define MPILAB_DOMAINS_H

#include "mpilab.h"
#include "stretches.h"
#include <stddef.h>

/* The default size of an aggregator's buffer. */
enum { MPILAB_AGGREGATOR_BYTES = 1 << 19 };

/* How many aggregators there are: mpilab_tuning.aggregators, or all ranks. */
static inline int mpilab_aggregators(int ranks)
{
    const int wanted = mpilab_tuning.aggregators;
    return wanted < 1 || wanted > ranks ? ranks : wanted;
}

/* Aggregators are spread evenly over the ranks. */
static inline int mpilab_aggregator_rank(int aggregator, int aggregators, int ranks)
{
    return (int)((long long)aggregator * ranks / aggregators);
}

/* Which aggregator a rank is, or -1. */
static inline int mpilab_aggregator_at(int rank, int aggregators, int ranks)
{
    int aggregator = aggregators - 1;
    while (aggregator >= 0 && mpilab_aggregator_rank(aggregator, aggregators, ranks) != rank)
        aggregator--;
    return aggregator;
}

/* If the elements cannot be divided evenly, the first domains have one element more than the
 * others. */
static inline struct mpilab_stretch mpilab_domain(const struct mpilab_matrix *matrix,
                                                  int aggregator, int aggregators)
{
    const MPI_Offset all = mpilab_all_elements(matrix).end;
    const MPI_Offset share = all / aggregators, left = all % aggregators;
    const MPI_Offset begin = aggregator * share + (aggregator < left ? aggregator : left);
    return (struct mpilab_stretch){begin, begin + share + (aggregator < left)};
}

/* What an aggregator reads in a round, if its buffer holds `length` elements. */
static inline struct mpilab_stretch mpilab_domain_piece(const struct mpilab_matrix *matrix,
                                                        int aggregator, int aggregators,
                                                        MPI_Offset round, MPI_Offset length)
{
    return mpilab_piece_of(mpilab_domain(matrix, aggregator, aggregators), round, length);
}

/* How many elements an aggregator's buffer must hold: no more than its domain has. Aggregator -1 is
 * none. */
static inline size_t mpilab_domain_room(const struct mpilab_matrix *matrix, int aggregator,
                                        int aggregators, MPI_Offset length)
{
    if (aggregator < 0)
        return 0;
    const struct mpilab_stretch domain = mpilab_domain(matrix, aggregator, aggregators);
    const MPI_Offset all = domain.end - domain.begin;
    return (size_t)(all < length ? all : length);
}

/* Collective: MPI_ERR_NO_MEM on all ranks if any lacks memory (`err`), so that no rank starts an
 * exchange that another cannot complete. */
static inline int mpilab_all_have_room(int err, MPI_Comm comm)
{
    int lacking = err != MPI_SUCCESS;
    err = MPI_Allreduce(MPI_IN_PLACE, &lacking, 1, MPI_INT, MPI_MAX, comm);
    return err != MPI_SUCCESS ? err : lacking ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

#endif
