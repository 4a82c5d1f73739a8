/* The table, in the layout of OMB 7.3: widths, decimals, comment lines, their order. */
#include "osu.h"
#include <stdio.h>

enum { SIZE_WIDTH = 10, WIDTH = 18, ITERATIONS_WIDTH = 12, DECIMALS = 2 };
/* A barrier's table has no sizes; its first column is as wide as its name in the comment line. */
enum { BARRIER_WIDTH = 17 };

static int is_silent(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank != 0;
}

/* OMB prints an empty line before the titles of collectives, and none before those of the other
 * two. */
void print_title(const char *before, const char *title)
{
    if (is_silent())
        return;
    printf("%s# OSU MPI %s Test v7.3\n", before, title);
    fflush(stdout);
}

void print_collective_columns(const struct options *options, int has_sizes)
{
    if (is_silent())
        return;
    if (has_sizes)
        printf("# Datatype: MPI_CHAR.\n%-*s%*s", SIZE_WIDTH, "# Size", WIDTH, "Avg Latency(us)");
    else
        printf("# Avg Latency(us)");
    if (options->full)
        printf("%*s%*s%*s", WIDTH, "Min Latency(us)", WIDTH, "Max Latency(us)", ITERATIONS_WIDTH,
               "Iterations");
    if (options->validate)
        printf("%*s", WIDTH, "Validation");
    printf("\n");
    fflush(stdout);
}

/* In the tables of two ranks, OMB 7.3 prints the datatype after the columns. */
void print_exchange_columns(const struct options *options, const char *column)
{
    if (is_silent())
        return;
    printf("%-*s%*s", SIZE_WIDTH, "# Size", WIDTH, column);
    if (options->validate)
        printf("%*s", WIDTH, "Validation");
    printf("\n# Datatype: MPI_CHAR.\n");
    fflush(stdout);
}

static void end_row(const struct options *options, int errors)
{
    if (options->validate)
        printf("%*s", WIDTH, errors ? "Fail" : "Pass");
    printf("\n");
    fflush(stdout);
}

/* Every rank calls this with the mean of its own times; `bytes` 0 is a barrier's row. */
void print_collective_row(const struct options *options, size_t bytes, double own_mean_us,
                          long iterations, int errors)
{
    const struct over_ranks us = over_ranks(own_mean_us);
    if (is_silent())
        return;
    if (bytes > 0)
        printf("%-*zu%*.*f", SIZE_WIDTH, bytes, WIDTH, DECIMALS, us.mean);
    else
        printf("%*.*f", BARRIER_WIDTH, DECIMALS, us.mean);
    if (options->full)
        printf("%*.*f%*.*f%*ld", WIDTH, DECIMALS, us.least, WIDTH, DECIMALS, us.largest,
               ITERATIONS_WIDTH, iterations);
    end_row(options, errors);
}

void print_exchange_row(const struct options *options, size_t bytes, double figure, int errors)
{
    if (is_silent())
        return;
    printf("%-*zu%*.*f", SIZE_WIDTH, bytes, WIDTH, DECIMALS, figure);
    end_row(options, errors);
}
