/* osu_barrier, imb_barrier: no message size, nothing to validate, and no barrier between two. */
#include "osu.h"

size_t run_barrier(const struct options *options)
{
    if (options->suite == IMB) {
        print_imb_head(options, "Barrier", 0, 0);
    } else {
        print_title("\n", "Barrier Latency");
        print_collective_columns(options, 0);
    }
    const long warmup = warmup_of(options, 0);
    double seconds = 0;
    for (long i = 0; i < warmup + options->iterations; i++) {
        const double begin = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        const double end = MPI_Wtime();
        if (i >= warmup)
            seconds += end - begin;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double mean_us = seconds * 1e6 / options->iterations;
    if (options->suite == IMB)
        print_imb_row(options, 0, 0, mean_us, options->iterations, 0);
    else
        print_collective_row(options, 0, mean_us, options->iterations, 0);
    return 0;
}
