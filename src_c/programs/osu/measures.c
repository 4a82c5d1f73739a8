/* What every benchmark needs: how often, where to, how many in all. */
#include "osu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long iterations_of(const struct options *options, size_t bytes)
{
    return bytes > LARGE_BYTES ? options->iterations_large : options->iterations;
}

long warmup_of(const struct options *options, size_t bytes)
{
    return bytes > LARGE_BYTES ? options->warmup_large : options->warmup;
}

/* Memory that begins with a page and has been written once, so that the system has given it. */
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
