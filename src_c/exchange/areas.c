/* The memory of data on their way: no more than the budget in all. */
#include "../tree/blocks.h"
#include "letters.h"
#include "travel.h"
#include <stdlib.h>

static long long all_handed(const struct mpilab_plan *plan, const struct task *task)
{
    long long sum = 0;
    for (int mate = 0; mate < plan->mates && is_destination(plan, task); mate++)
        sum += mate == plan->self ? 0 : bytes_handed(plan, task, mate);
    return sum;
}

static void grow(long long *most, long long bytes)
{
    if (bytes > *most)
        *most = bytes;
}

/* The first pieces are the largest: memory for those is enough for all. */
int travel_take_memory(struct travel *travel)
{
    struct mpilab_plan *const plan = travel->plan;
    const long long tasks = task_count(plan);
    long long own = 1, handed = 1;
    for (long long number = 0; number < tasks && task_of(plan, number).begin == 0; number++) {
        const struct task task = task_of(plan, number);
        long long up = 0, from_mates = 0;
        for (int mate = 0; mate < plan->mates; mate++) {
            const long long bytes =
                plan->out[mate] == NULL ? 0 : bytes_up(plan, &task, plan->out[mate]);
            up += bytes;
            from_mates += mate == plan->self ? 0 : bytes;
        }
        const long long in = bytes_in(plan, &task, 0, mpilab_served(plan));
        grow(&travel->bytes[UP], from_mates);
        grow(&travel->bytes[OUTGOING], up);
        grow(&travel->bytes[INCOMING], in);
        grow(&travel->bytes[DOWNWARD],
             is_destination(plan, &task) ? in - bytes_down(plan, &task, plan->self) : in);
        if (plan->route->carrier(plan->topology, plan->rank) != plan->rank)
            grow(&own, bytes_up(plan, &task, plan->own_out));
        grow(&handed, all_handed(plan, &task));
    }
    for (int area = 0; area < AREAS; area++) {
        travel->area[area] = mpilab_stage(&travel->plan->staging, (long)travel->bytes[area]);
        if (travel->area[area] == NULL)
            return MPI_ERR_NO_MEM;
        if (area == UP) /* letters hold as much, and are given back before there is more */
            letters_open(plan, travel->area[UP]);
    }
    const size_t requests =
        5 * (size_t)plan->mates + (size_t)plan->topology->size + (size_t)plan->topology->nodes;
    travel->own = malloc((size_t)own);
    travel->handed = malloc((size_t)handed);
    travel->at = malloc((size_t)plan->mates * sizeof *travel->at);
    travel->requests = malloc(requests * sizeof *travel->requests);
    travel->is_receive = calloc(requests, 1);
    if (travel->own == NULL || travel->handed == NULL || travel->at == NULL ||
        travel->requests == NULL || travel->is_receive == NULL)
        return MPI_ERR_NO_MEM;
    mpilab_no_requests((int)requests, travel->requests);
    return MPI_SUCCESS;
}

void travel_free_memory(struct travel *travel)
{
    for (int area = 0; area < AREAS; area++)
        mpilab_unstage(&travel->plan->staging, travel->area[area], (long)travel->bytes[area]);
    free(travel->own);
    free(travel->handed);
    free(travel->at);
    free(travel->requests);
    free(travel->is_receive);
}
