/* What every benchmark needs: how many iterations, a buffer, figures over all ranks. */
#include "osu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long iterations_of(const struct options *options, size_t bytes)
{
    const long most = bytes > LARGE_BYTES ? options->iterations_large : options->iterations;
    if (options->volume == 0 || bytes == 0 || options->volume / bytes >= (size_t)most)
        return most;
    return options->volume > bytes ? (long)(options->volume / bytes) : 1;
}

long warmup_of(const struct options *options, size_t bytes)
{
    const long most = bytes > LARGE_BYTES ? options->warmup_large : options->warmup;
    /* IMB's are a tenth of the timed calls. */
    return most >= 0 ? most : (iterations_of(options, bytes) + 9) / 10;
}

/* Page-aligned memory that has been written once, so that the system has allocated it. */
void *new_buffer(size_t bytes)
{
    enum { PAGE = 4096 };
    void *buffer;
    if (posix_memalign(&buffer, PAGE, bytes > 0 ? bytes : 1) != 0) {
        fprintf(stderr, "mpilab-osu: there is no memory for a buffer of %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        return NULL;
    }
    memset(buffer, 1, bytes);
    return buffer;
}

int sum_over_ranks(int number)
{
    int sum = 0;
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

struct over_ranks over_ranks(double own)
{
    struct over_ranks found = {0};
    double sum = 0;
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Reduce(&own, &found.least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&own, &found.largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    found.mean = sum / ranks;
    return found;
}
