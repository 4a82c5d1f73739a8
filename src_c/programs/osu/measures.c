/* What every benchmark needs: how many iterations, a buffer, a sum over all ranks. */
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
