/* Who passes on whose data, and how much of it there is. */
#include "../tree/blocks.h"
#include "letters.h"
#include "travel.h"
#include <stdlib.h>

enum { MOST_BUDGET = 1 << 30 };

static int rank_of_mate(const struct mpilab_plan *plan, int mate)
{
    return plan->topology->order[plan->begin + mate];
}

/* The most pairs of which any rank holds data at a time: the same on all ranks. */
static int most_pairs(const struct mpilab_plan *plan, long long *most)
{
    const struct mpilab_topology *const topology = plan->topology;
    const int size = topology->size;
    int *const carried = calloc(2 * (size_t)size, sizeof *carried), *const served = carried + size;
    if (carried == NULL)
        return MPI_ERR_NO_MEM;
    for (int rank = 0; rank < size; rank++)
        carried[plan->route->carrier(topology, rank)]++;
    for (int rank = 0; rank < size; rank++)
        for (int node = 0; node < topology->nodes && carried[rank] > 0; node++)
            if (node != topology->node[rank])
                served[plan->route->partner(topology, rank, node)] += carried[rank];
    *most = 0;
    for (int rank = 0; rank < size; rank++) {
        const int node = topology->node[rank];
        const int mates = topology->node_begin[node + 1] - topology->node_begin[node];
        const int remote = size - mates, window = plan->window;
        const long long out = (long long)carried[rank] * (remote < window ? remote : window);
        const long long in = (long long)served[rank] * (mates < window ? mates : window);
        *most = out > *most ? out : *most;
        *most = in > *most ? in : *most;
    }
    free(carried);
    return MPI_SUCCESS;
}

/* Append the ranks whose data `carrier` takes out. */
static void add_sources(struct mpilab_plan *plan, int carrier, int *sources)
{
    const struct mpilab_topology *const topology = plan->topology;
    const int node = topology->node[carrier];
    for (int place = topology->node_begin[node]; place < topology->node_begin[node + 1]; place++) {
        const int rank = topology->order[place];
        if (plan->route->carrier(topology, rank) != carrier)
            continue;
        plan->source[*sources] = rank;
        plan->feeder[(*sources)++] = carrier;
    }
}

static void find_sources(struct mpilab_plan *plan)
{
    const struct mpilab_topology *const topology = plan->topology;
    int sources = 0;
    for (int mate = 0; mate < plan->mates; mate++) {
        plan->source_begin[mate] = sources;
        for (int place = 0; place < topology->size; place++) {
            const int rank = topology->order[place];
            if (topology->node[rank] != plan->node &&
                plan->route->carrier(topology, rank) == rank &&
                plan->route->partner(topology, rank, plan->node) == rank_of_mate(plan, mate))
                add_sources(plan, rank, &sources);
        }
    }
    plan->source_begin[plan->mates] = sources;
}

static int take_memory(struct mpilab_plan *plan)
{
    const size_t mates = (size_t)plan->mates, remote = (size_t)plan->remote;
    plan->source = malloc(remote * sizeof(int));
    plan->feeder = malloc(remote * sizeof(int));
    plan->source_begin = malloc((mates + 1) * sizeof(int));
    plan->out = malloc(mates * sizeof *plan->out);
    plan->in = malloc(mates * sizeof *plan->in);
    plan->own_in = malloc(remote * sizeof *plan->own_in);
    plan->told = malloc(2 * remote * sizeof *plan->told + MOST_RIDING);
    plan->heard = malloc(2 * mates * remote * sizeof *plan->heard);
    plan->telling = malloc(mates * sizeof *plan->telling);
    if (plan->telling != NULL)
        mpilab_no_requests(plan->mates, plan->telling);
    return plan->source == NULL || plan->feeder == NULL || plan->source_begin == NULL ||
                   plan->out == NULL || plan->in == NULL || plan->own_in == NULL ||
                   plan->told == NULL || plan->heard == NULL || plan->telling == NULL
               ? MPI_ERR_NO_MEM
               : MPI_SUCCESS;
}

void mpilab_free_plan(struct mpilab_plan *plan)
{
    if (!mpilab_leave_sends(plan->tellings, plan->telling))
        plan->told = NULL;
    letters_burn(plan);
    free(plan->source);
    free(plan->feeder);
    free(plan->source_begin);
    free(plan->out);
    free(plan->in);
    free(plan->own_in);
    free(plan->told);
    free(plan->heard);
    free(plan->telling);
}

int mpilab_begin_plan(const struct mpilab_topology *topology, const struct mpilab_route *route,
                      struct mpilab_exchange *exchange, struct mpilab_plan *plan)
{
    const int rank = exchange->rank, node = topology->node[rank];
    const int begin = topology->node_begin[node], mates = topology->node_begin[node + 1] - begin;
    const long budget = mpilab_tuning.budget_bytes;
    long long most;
    *plan = (struct mpilab_plan){
        .topology = topology,
        .route = route,
        .exchange = exchange,
        .rank = rank,
        .node = node,
        .begin = begin,
        .mates = mates,
        .self = topology->position[rank] - begin,
        .remote = topology->size - mates,
        .window = route->one_by_one ? 1 : topology->size,
        .budget = budget <= 0            ? MPILAB_BUDGET_BYTES
                  : budget < MOST_BUDGET ? budget
                                         : MOST_BUDGET,
    };
    int err = most_pairs(plan, &most);
    if (err == MPI_SUCCESS)
        plan->piece = plan->budget / (AREAS * most);
    if (err == MPI_SUCCESS && plan->piece == 0)
        err = MPI_ERR_ARG;
    plan->staging.budget = plan->budget;
    return err;
}

int mpilab_tell_plan(struct mpilab_plan *plan)
{
    int err = take_memory(plan);
    if (err == MPI_SUCCESS) {
        find_sources(plan);
        err = letters_exchange(plan);
    }
    return err;
}
