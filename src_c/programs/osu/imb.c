/* The table, in the layout of IMB 2021: what IMB-MPI1 prints of one collective.
 *
 * Its columns are the same as those of osu_bcast -f in another order: the smallest, the largest and
 * the mean of the ranks' own means. With -c, `defects` is the number of wrong results.
 */
#include "osu.h"
#include <stdio.h>

enum { WIDTH = 13, DECIMALS = 2 };
static const char RULE[] = "----------------------------------------------------------------";
/* Of a barrier, which has no sizes. */
static const char SHORT_RULE[] = "---------------------------------------------------";

static int is_silent(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank != 0;
}

/* `largest` 0 is a barrier's table. */
void print_imb_head(const struct options *options, const char *title, size_t smallest,
                    size_t largest)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (is_silent())
        return;
    const char *const rule = largest > 0 ? RULE : SHORT_RULE;
    printf("\n# Minimum message length in bytes:   %zu\n"
           "# Maximum message length in bytes:   %zu\n#\n"
           "# MPI_Datatype                   :   MPI_BYTE\n"
           "# MPI_Datatype for reductions    :   MPI_FLOAT\n"
           "# MPI_Op                         :   MPI_SUM\n#\n#\n\n"
           "# List of Benchmarks to run:\n\n# %s\n\n"
           "#%s\n# Benchmarking %s\n# #processes = %d\n#%s\n",
           smallest, largest, title, rule, title, ranks, rule);
    if (largest > 0)
        printf("%*s", WIDTH, "#bytes");
    printf("%*s%*s%*s%*s", WIDTH, "#repetitions", WIDTH, "t_min[usec]", WIDTH, "t_max[usec]", WIDTH,
           "t_avg[usec]");
    if (options->validate)
        printf("%*s", WIDTH, "defects");
    printf("\n");
    fflush(stdout);
}

/* Every rank calls this with the mean of its own times. */
void print_imb_row(const struct options *options, int has_size, size_t bytes, double own_mean_us,
                   long iterations, int errors)
{
    const struct over_ranks us = over_ranks(own_mean_us);
    if (is_silent())
        return;
    if (has_size)
        printf("%*zu", WIDTH, bytes);
    printf("%*ld%*.*f%*.*f%*.*f", WIDTH, iterations, WIDTH, DECIMALS, us.least, WIDTH, DECIMALS,
           us.largest, WIDTH, DECIMALS, us.mean);
    if (options->validate)
        printf("%*.*f", WIDTH, DECIMALS, (double)errors);
    printf("\n");
    fflush(stdout);
}
