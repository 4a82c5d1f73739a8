/* Which rank forwards whose data, and how much of it at a time. */
#include "plan.h"
#include "../tree/blocks.h"
#include <stdlib.h>

enum { MOST_BUDGET = 1 << 30 };

int plan_rank_at(const struct mpilab_plan *plan, int place)
{
    return plan->topology->order[place];
}

int plan_local_rank(const struct mpilab_plan *plan, int local)
{
    return plan->topology->order[plan->begin + local];
}

/* The maximum number of pairs whose data any rank holds at a time: the same on all ranks. */
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
        const int locals = topology->node_begin[node + 1] - topology->node_begin[node];
        const int remote = size - locals, window = plan->window;
        const long long out = (long long)carried[rank] * (remote < window ? remote : window);
        const long long in = (long long)served[rank] * (locals < window ? locals : window);
        *most = out > *most ? out : *most;
        *most = in > *most ? in : *most;
    }
    free(carried);
    return MPI_SUCCESS;
}

/* Append the ranks whose data `carrier` sends to other nodes. */
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
    for (int local = 0; local < plan->locals; local++) {
        plan->source_begin[local] = sources;
        for (int place = 0; place < topology->size; place++) {
            const int rank = topology->order[place];
            if (topology->node[rank] != plan->node &&
                plan->route->carrier(topology, rank) == rank &&
                plan->route->partner(topology, rank, plan->node) == plan_local_rank(plan, local))
                add_sources(plan, rank, &sources);
        }
    }
    plan->source_begin[plan->locals] = sources;
}

static int take_memory(struct mpilab_plan *plan)
{
    const size_t locals = (size_t)plan->locals, remote = (size_t)plan->remote;
    plan->source = malloc(remote * sizeof(int));
    plan->feeder = malloc(remote * sizeof(int));
    plan->source_begin = malloc((locals + 1) * sizeof(int));
    plan->out = malloc(locals * sizeof *plan->out);
    plan->in = malloc(locals * sizeof *plan->in);
    plan->own_in = malloc(remote * sizeof *plan->own_in);
    plan->headers_sent = malloc(2 * remote * sizeof *plan->headers_sent + MOST_PIGGYBACKED);
    plan->counts_received = malloc(2 * locals * remote * sizeof *plan->counts_received);
    plan->header_sends = malloc(locals * sizeof *plan->header_sends);
    if (plan->header_sends != NULL)
        mpilab_no_requests(plan->locals, plan->header_sends);
    return plan->source == NULL || plan->feeder == NULL || plan->source_begin == NULL ||
                   plan->out == NULL || plan->in == NULL || plan->own_in == NULL ||
                   plan->headers_sent == NULL || plan->counts_received == NULL ||
                   plan->header_sends == NULL
               ? MPI_ERR_NO_MEM
               : MPI_SUCCESS;
}

void plan_free(struct mpilab_plan *plan)
{
    if (!mpilab_leave_sends(plan->header_send_count, plan->header_sends))
        plan->headers_sent = NULL;
    plan_free_headers(plan);
    free(plan->source);
    free(plan->feeder);
    free(plan->source_begin);
    free(plan->out);
    free(plan->in);
    free(plan->own_in);
    free(plan->headers_sent);
    free(plan->counts_received);
    free(plan->header_sends);
}

int plan_begin(const struct mpilab_topology *topology, const struct mpilab_route *route,
               struct mpilab_exchange *exchange, struct mpilab_plan *plan)
{
    const int rank = exchange->rank, node = topology->node[rank];
    const int begin = topology->node_begin[node], locals = topology->node_begin[node + 1] - begin;
    const long budget = mpilab_tuning.budget_bytes;
    long long most;
    *plan = (struct mpilab_plan){
        .topology = topology,
        .route = route,
        .exchange = exchange,
        .rank = rank,
        .node = node,
        .begin = begin,
        .locals = locals,
        .self = topology->position[rank] - begin,
        .remote = topology->size - locals,
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

int plan_take_memory(struct mpilab_plan *plan)
{
    const int err = take_memory(plan);
    if (err == MPI_SUCCESS)
        find_sources(plan);
    return err;
}

void plan_free_headers(struct mpilab_plan *plan)
{
    mpilab_release(&plan->staging, plan->piggyback_room);
    plan->piggyback_room = 0;
    free(plan->headers);
    plan->headers = NULL;
}

/* --- pieces: sums over the counts that the ranks of a node have exchanged */

static long long larger(long long one, long long other)
{
    return one > other ? one : other;
}

static int windows_of(const struct mpilab_plan *plan)
{
    return (plan->topology->size + plan->window - 1) / plan->window;
}

long long task_count(const struct mpilab_plan *plan)
{
    const int sources = plan->source_begin[plan->locals];
    long long longest = 0;
    for (int i = 0; i < plan->remote; i++)
        longest = larger(longest, plan->own_out[i]);
    for (int i = 0; i < sources; i++)
        longest = larger(longest, plan->own_in[i]);
    for (int local = 0; local < plan->locals; local++) {
        for (int i = 0; i < plan->remote && plan->out[local] != NULL; i++)
            longest = larger(longest, plan->out[local][i]);
        for (int i = 0; i < plan_served(plan); i++)
            longest = larger(longest, plan->in[local][i]);
    }
    return (longest + plan->piece - 1) / plan->piece * windows_of(plan);
}

struct task task_of(const struct mpilab_plan *plan, long long number)
{
    const int size = plan->topology->size, windows = windows_of(plan);
    const int first = (int)(number % windows) * plan->window;
    const int last = first + plan->window < size ? first + plan->window : size;
    return (struct task){first, last, number / windows * plan->piece};
}

long long bytes_of_pair(const struct mpilab_plan *plan, const struct task *task, long long bytes)
{
    const long long rest = bytes - task->begin;
    return rest <= 0 ? 0 : rest < plan->piece ? rest : plan->piece;
}

struct span task_places(const struct task *task, int first, int last)
{
    return (struct span){task->first > first ? task->first : first,
                         task->last < last ? task->last : last};
}

struct span task_locals(const struct mpilab_plan *plan, const struct task *task)
{
    const struct span places = task_places(task, plan->begin, plan->begin + plan->locals);
    return (struct span){places.first - plan->begin, places.last - plan->begin};
}

struct span task_node(const struct mpilab_plan *plan, const struct task *task, int node)
{
    return task_places(task, plan->topology->node_begin[node],
                       plan->topology->node_begin[node + 1]);
}

long long bytes_to_places(const struct mpilab_plan *plan, const struct task *task,
                          const long long *row, struct span places)
{
    const int left_out = places.first < plan->begin ? 0 : plan->locals;
    long long sum = 0;
    for (int place = places.first; place < places.last; place++)
        sum += bytes_of_pair(plan, task, row[place - left_out]);
    return sum;
}

long long bytes_up(const struct mpilab_plan *plan, const struct task *task, const long long *row)
{
    const int end = plan->begin + plan->locals;
    return bytes_to_places(plan, task, row, task_places(task, 0, plan->begin)) +
           bytes_to_places(plan, task, row, task_places(task, end, plan->topology->size));
}

long long bytes_out(const struct mpilab_plan *plan, const struct task *task, int node)
{
    const struct span places = task_node(plan, task, node);
    long long sum = 0;
    for (int local = 0; local < plan->locals && places.first < places.last; local++)
        if (plan->out[local] != NULL)
            sum += bytes_to_places(plan, task, plan->out[local], places);
    return sum;
}

long long bytes_in(const struct mpilab_plan *plan, const struct task *task, int first, int last)
{
    const struct span locals = task_locals(plan, task);
    long long sum = 0;
    for (int local = locals.first; local < locals.last; local++)
        for (int source = first; source < last; source++)
            sum += bytes_of_pair(plan, task, plan->in[local][source]);
    return sum;
}

long long bytes_down(const struct mpilab_plan *plan, const struct task *task, int local)
{
    long long sum = 0;
    for (int source = 0; source < plan_served(plan); source++)
        sum += bytes_of_pair(plan, task, plan->in[local][source]);
    return sum;
}

int task_is_for_us(const struct mpilab_plan *plan, const struct task *task)
{
    const struct span locals = task_locals(plan, task);
    return locals.first <= plan->self && plan->self < locals.last;
}

long long bytes_handed(const struct mpilab_plan *plan, const struct task *task, int local)
{
    long long sum = 0;
    for (int i = plan->source_begin[local]; i < plan->source_begin[local + 1]; i++)
        sum += bytes_of_pair(plan, task, plan->own_in[i]);
    return sum;
}

/* --- this rank's own data */

int plan_pack(const struct mpilab_plan *plan, const struct task *task, struct span places,
              char **to)
{
    int err = MPI_SUCCESS;
    for (int place = places.first; place < places.last && err == MPI_SUCCESS; place++) {
        const int dest = plan_rank_at(plan, place);
        const long long bytes = bytes_of_pair(plan, task, mpilab_bytes_to(plan->exchange, dest));
        err = mpilab_pack(plan->exchange, dest, task->begin, bytes, *to);
        *to += bytes;
    }
    return err;
}

int plan_unpack(const struct mpilab_plan *plan, const struct task *task, int source,
                const char **from)
{
    const long long bytes = bytes_of_pair(plan, task, plan->own_in[source]);
    const char *const begin = *from;
    *from += bytes;
    return mpilab_unpack(plan->exchange, plan->source[source], task->begin, bytes, begin);
}

int plan_pack_up(const struct mpilab_plan *plan, const struct task *task, char *to)
{
    const int end = plan->begin + plan->locals;
    const int err = plan_pack(plan, task, task_places(task, 0, plan->begin), &to);
    if (err != MPI_SUCCESS)
        return err;
    return plan_pack(plan, task, task_places(task, end, plan->topology->size), &to);
}
