/* osu_barrier: no message size, nothing to validate, and no barrier between the barriers. */
#include "osu.h"

size_t run_barrier(const struct options *options)
{
    print_title("\n", "Barrier Latency");
    print_collective_columns(options, 0);
    double seconds = 0;
    for (long i = 0; i < options->warmup + options->iterations; i++) {
        const double begin = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        const double end = MPI_Wtime();
        if (i >= options->warmup)
            seconds += end - begin;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    print_collective_row(options, 0, seconds * 1e6 / options->iterations, options->iterations, 0);
    return 0;
}
