/* Data in transit between nodes: the memory that holds it, and three hops at a time. */
#include "travel.h"
#include "../tree/blocks.h"
#include "headers.h"
#include <stdlib.h>
#include <string.h>

/* A rank sends to few nodes at a time, so that the number of messages under way grows with that of
 * nodes, not with its square, and beyond 128 nodes it stays the same. (One by one, it sends to a
 * single node.) */
enum { NODES_AT_ONCE = 32, MESSAGES_AT_ONCE = 4096 };

struct travel {
    struct mpilab_plan *plan;
    char *area[AREAS];
    long long bytes[AREAS];
    char *own, *handed; /* this rank's own data, to its carrier and from distributors */
    char **at;          /* [locals] where to read or write next */
    MPI_Request *requests;
    char *is_receive; /* for each request; all others are sends */
    int started;
};

/* --- memory: no more than the budget in all */

static long long all_handed(const struct mpilab_plan *plan, const struct task *task)
{
    long long sum = 0;
    for (int local = 0; local < plan->locals && task_is_for_us(plan, task); local++)
        sum += local == plan->self ? 0 : bytes_handed(plan, task, local);
    return sum;
}

static void grow(long long *most, long long bytes)
{
    if (bytes > *most)
        *most = bytes;
}

/* The first pieces are the largest: memory for those is enough for all. */
static int travel_take_memory(struct travel *travel)
{
    struct mpilab_plan *const plan = travel->plan;
    const long long tasks = task_count(plan);
    long long own = 1, handed = 1;
    for (long long number = 0; number < tasks && task_of(plan, number).begin == 0; number++) {
        const struct task task = task_of(plan, number);
        long long up = 0, from_locals = 0;
        for (int local = 0; local < plan->locals; local++) {
            const long long bytes =
                plan->out[local] == NULL ? 0 : bytes_up(plan, &task, plan->out[local]);
            up += bytes;
            from_locals += local == plan->self ? 0 : bytes;
        }
        const long long in = bytes_in(plan, &task, 0, plan_served(plan));
        grow(&travel->bytes[UP], from_locals);
        grow(&travel->bytes[OUTGOING], up);
        grow(&travel->bytes[INCOMING], in);
        grow(&travel->bytes[DOWNWARD],
             task_is_for_us(plan, &task) ? in - bytes_down(plan, &task, plan->self) : in);
        if (plan->route->carrier(plan->topology, plan->rank) != plan->rank)
            grow(&own, bytes_up(plan, &task, plan->own_out));
        grow(&handed, all_handed(plan, &task));
    }
    for (int area = 0; area < AREAS; area++) {
        travel->area[area] = mpilab_stage(&travel->plan->staging, (long)travel->bytes[area]);
        if (travel->area[area] == NULL)
            return MPI_ERR_NO_MEM;
        if (area == UP) /* headers hold as much, and are freed before it is allocated */
            headers_unpack(plan, travel->area[UP]);
    }
    const size_t requests =
        5 * (size_t)plan->locals + (size_t)plan->topology->size + (size_t)plan->topology->nodes;
    travel->own = malloc((size_t)own);
    travel->handed = malloc((size_t)handed);
    travel->at = malloc((size_t)plan->locals * sizeof *travel->at);
    travel->requests = malloc(requests * sizeof *travel->requests);
    travel->is_receive = calloc(requests, 1);
    if (travel->own == NULL || travel->handed == NULL || travel->at == NULL ||
        travel->requests == NULL || travel->is_receive == NULL)
        return MPI_ERR_NO_MEM;
    mpilab_no_requests((int)requests, travel->requests);
    return MPI_SUCCESS;
}

static void travel_free_memory(struct travel *travel)
{
    for (int area = 0; area < AREAS; area++)
        mpilab_unstage(&travel->plan->staging, travel->area[area], (long)travel->bytes[area]);
    free(travel->own);
    free(travel->handed);
    free(travel->at);
    free(travel->requests);
    free(travel->is_receive);
}

/* Messages are packed bytes; an empty one is not sent. Both functions advance `*data`. */
static int post_send(struct travel *travel, char **data, long long bytes, int dest)
{
    char *const from = *data;
    *data += bytes;
    if (bytes == 0)
        return MPI_SUCCESS;
    travel->is_receive[travel->started] = 0;
    return MPI_Isend(from, (int)bytes, MPI_PACKED, dest, TAG, travel->plan->exchange->comm,
                     &travel->requests[travel->started++]);
}

static int post_receive(struct travel *travel, char **data, long long bytes, int source)
{
    char *const to = *data;
    *data += bytes;
    if (bytes == 0)
        return MPI_SUCCESS;
    travel->is_receive[travel->started] = 1;
    return MPI_Irecv(to, (int)bytes, MPI_PACKED, source, TAG, travel->plan->exchange->comm,
                     &travel->requests[travel->started++]);
}

/* --- up: what did not come with the counts */
static int post_up(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const int carrier = plan->route->carrier(plan->topology, plan->rank);
    char *next = travel->area[UP], *own = travel->own;
    int err = MPI_SUCCESS;
    for (int local = 0; local < plan->locals && err == MPI_SUCCESS; local++) {
        if (local == plan->self || plan->out[local] == NULL)
            continue;
        const long long bytes = bytes_up(plan, task, plan->out[local]);
        if (is_piggybacked(plan, task, plan->out[local]))
            next += bytes;
        else
            err = post_receive(travel, &next, bytes, plan_rank_at(plan, plan->begin + local));
    }
    if (err != MPI_SUCCESS || carrier == plan->rank || is_piggybacked(plan, task, plan->own_out))
        return err;
    err = plan_pack_up(plan, task, own);
    if (err == MPI_SUCCESS)
        err = post_send(travel, &own, bytes_up(plan, task, plan->own_out), carrier);
    return err;
}

/* From "up" to "outgoing". */
static int sort_outgoing(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    char *to = travel->area[OUTGOING], *from = travel->area[UP];
    int err = MPI_SUCCESS;
    for (int local = 0; local < plan->locals; local++) {
        travel->at[local] = from;
        if (local != plan->self && plan->out[local] != NULL)
            from += bytes_up(plan, task, plan->out[local]);
    }
    for (int node = 0; node < plan->topology->nodes && err == MPI_SUCCESS; node++) {
        const struct span places = task_node(plan, task, node);
        if (node == plan->node || places.first >= places.last)
            continue;
        for (int local = 0; local < plan->locals && err == MPI_SUCCESS; local++) {
            if (plan->out[local] == NULL)
                continue;
            if (local == plan->self) {
                err = plan_pack(plan, task, places, &to);
                continue;
            }
            const long long bytes = bytes_to_places(plan, task, plan->out[local], places);
            memcpy(to, travel->at[local], (size_t)bytes);
            to += bytes;
            travel->at[local] += bytes;
        }
    }
    return err;
}

/* --- across: in step s, to the node s nodes further and from the one s nodes back, so that no node
 * is everybody's first. */
static int nodes_at_once(const struct mpilab_plan *plan)
{
    const int nodes = plan->topology->nodes;
    if (plan->route->one_by_one)
        return nodes;
    const int each = nodes < MESSAGES_AT_ONCE ? MESSAGES_AT_ONCE / nodes : 1;
    return each < NODES_AT_ONCE ? each : NODES_AT_ONCE;
}

static int is_among(const struct mpilab_plan *plan, int from, int to, int first_step)
{
    const int nodes = plan->topology->nodes, step = (to - from + nodes) % nodes;
    return first_step <= step && step < first_step + nodes_at_once(plan);
}

static int post_across(struct travel *travel, const struct task *task, int first_step)
{
    const struct mpilab_plan *const plan = travel->plan;
    const struct mpilab_topology *const topology = plan->topology;
    const int *const feeder = plan_feeders(plan), served = plan_served(plan);
    char *incoming = travel->area[INCOMING], *outgoing = travel->area[OUTGOING];
    int err = MPI_SUCCESS;
    for (int first = 0, last; first < served && err == MPI_SUCCESS; first = last) {
        last = first + 1;
        while (last < served && feeder[last] == feeder[first])
            last++;
        const long long bytes = bytes_in(plan, task, first, last);
        if (is_among(plan, topology->node[feeder[first]], plan->node, first_step))
            err = post_receive(travel, &incoming, bytes, feeder[first]);
        else
            incoming += bytes;
    }
    for (int node = 0; node < topology->nodes && err == MPI_SUCCESS; node++) {
        if (node == plan->node)
            continue;
        const long long bytes = bytes_out(plan, task, node);
        if (is_among(plan, plan->node, node, first_step))
            err = post_send(travel, &outgoing, bytes,
                            plan->route->partner(topology, plan->rank, node));
        else
            outgoing += bytes;
    }
    return err;
}

/* From "incoming" to "downward"; this rank's own data goes to its receive buffer. */
static int sort_incoming(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const struct span locals = task_locals(plan, task);
    const char *from = travel->area[INCOMING];
    char *to = travel->area[DOWNWARD];
    int err = MPI_SUCCESS;
    for (int local = locals.first; local < locals.last; local++) {
        travel->at[local] = to;
        if (local != plan->self)
            to += bytes_down(plan, task, local);
    }
    for (int source = 0; source < plan_served(plan); source++)
        for (int local = locals.first; local < locals.last && err == MPI_SUCCESS; local++) {
            if (local == plan->self) {
                err = plan_unpack(plan, task, plan->source_begin[local] + source, &from);
                continue;
            }
            const long long bytes = bytes_of_pair(plan, task, plan->in[local][source]);
            memcpy(travel->at[local], from, (size_t)bytes);
            from += bytes;
            travel->at[local] += bytes;
        }
    return err;
}

/* --- down */
static int post_down(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const struct span locals = task_locals(plan, task);
    char *next = travel->area[DOWNWARD], *handed = travel->handed;
    int err = MPI_SUCCESS;
    for (int local = 0; local < plan->locals && task_is_for_us(plan, task) && err == MPI_SUCCESS;
         local++)
        if (local != plan->self)
            err = post_receive(travel, &handed, bytes_handed(plan, task, local),
                               plan_rank_at(plan, plan->begin + local));
    for (int local = locals.first; local < locals.last && err == MPI_SUCCESS; local++)
        if (local != plan->self)
            err = post_send(travel, &next, bytes_down(plan, task, local),
                            plan_rank_at(plan, plan->begin + local));
    return err;
}

static int take_handed(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const char *from = travel->handed;
    int err = MPI_SUCCESS;
    for (int local = 0; local < plan->locals && task_is_for_us(plan, task); local++)
        for (int i = plan->source_begin[local]; i < plan->source_begin[local + 1]; i++)
            if (local != plan->self && err == MPI_SUCCESS)
                err = plan_unpack(plan, task, i, &from);
    return err;
}

/* --- one step: three hops of three tasks */
static int take_step(struct travel *travel, long long step, long long tasks)
{
    struct mpilab_plan *const plan = travel->plan;
    const int goes_up = step < tasks, goes_down = step >= 2;
    const int goes_across = step >= 1 && step - 1 < tasks;
    const struct task up = task_of(plan, step), across = task_of(plan, goes_across ? step - 1 : 0);
    const struct task down = task_of(plan, goes_down ? step - 2 : 0);
    int err = MPI_SUCCESS;
    if (goes_up)
        err = post_up(travel, &up);
    if (err == MPI_SUCCESS && goes_down)
        err = post_down(travel, &down);
    int first_step = 1;
    do {
        if (err == MPI_SUCCESS && goes_across)
            err = post_across(travel, &across, first_step);
        if (err == MPI_SUCCESS && travel->started > 0)
            err = MPI_Waitall(travel->started, travel->requests, MPI_STATUSES_IGNORE);
        if (err != MPI_SUCCESS)
            return err;
        travel->started = 0;
        first_step += nodes_at_once(plan);
    } while (goes_across && first_step < plan->topology->nodes);
    if (goes_up)
        err = sort_outgoing(travel, &up);
    if (err == MPI_SUCCESS && goes_across)
        err = sort_incoming(travel, &across);
    if (err == MPI_SUCCESS && goes_down)
        err = take_handed(travel, &down);
    return err;
}

/* After an error, nothing may arrive in memory that is freed, and data being sent must stay. */
static void abandon(struct travel *travel)
{
    int all_over = 1;
    for (int i = 0; i < travel->started; i++)
        if (travel->is_receive[i])
            mpilab_abandon(1, &travel->requests[i]);
        else if (!mpilab_leave_sends(1, &travel->requests[i]))
            all_over = 0;
    if (!all_over)
        travel->area[OUTGOING] = travel->area[DOWNWARD] = travel->own = NULL;
}

int mpilab_travel(struct mpilab_plan *plan)
{
    struct travel travel = {.plan = plan};
    const long long tasks = task_count(plan);
    int err = travel_take_memory(&travel);
    const long long steps = tasks == 0 ? 1 : tasks + 2;
    for (long long step = 0; step < steps && err == MPI_SUCCESS; step++)
        err = take_step(&travel, step, tasks);
    /* The headers have arrived long ago: waiting for them earlier might put the rank to sleep once
     * more. */
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(plan->header_send_count, plan->header_sends, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        abandon(&travel);
    travel_free_memory(&travel);
    return err;
}
