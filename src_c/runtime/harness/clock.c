/* The clock of all times that the harness records.
 *
 * MPI_Wtime starts at 0 in each process since Open MPI 5.0.7; spans over several ranks of a machine
 * need a common clock. */
#define _GNU_SOURCE
#include "harness.h"
#include <time.h>

int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
