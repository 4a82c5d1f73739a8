/* Memory for data of other ranks: never more than a budget, and the most of it is remembered, so
 * that a test can tell that a bound holds. */
#include "exchange.h"
#include <stdlib.h>

long mpilab_most_staged;

int mpilab_hold(struct mpilab_staging *staging, long bytes)
{
    if (bytes > staging->budget - staging->held)
        return 0;
    staging->held += bytes;
    if (staging->held > mpilab_most_staged)
        mpilab_most_staged = staging->held;
    return 1;
}

void mpilab_release(struct mpilab_staging *staging, long bytes)
{
    staging->held -= bytes;
}

void *mpilab_stage(struct mpilab_staging *staging, long bytes)
{
    if (!mpilab_hold(staging, bytes))
        return NULL;
    void *const memory = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (memory == NULL)
        mpilab_release(staging, bytes);
    return memory;
}

void mpilab_unstage(struct mpilab_staging *staging, void *memory, long bytes)
{
    if (memory != NULL)
        mpilab_release(staging, bytes);
    free(memory);
}
