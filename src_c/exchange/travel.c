/* Pieces of blocks on their way from node to node: up to a carrier, across, and down.
 *
 *   step            0           1           2           3
 *   piece 0         up          across      down
 *   piece 1                     up          across      down       all of a step at once
 *
 * A rank waits for all of a step before it begins the next one. Steps are numbered alike on all
 * ranks: what is sent in step s is received in step s. So nobody waits for one who waits for him.
 */
#include "travel.h"
#include "../tree/blocks.h"
#include "letters.h"
#include <string.h>

/* Messages go as bytes that were packed; none without any. They move `*data` on. */
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

static int rank_at(const struct mpilab_plan *plan, int place)
{
    return plan->topology->order[place];
}

/* Put what this rank itself sends to these places behind `*to`. */
static int pack_own(const struct mpilab_plan *plan, const struct task *task, struct span places,
                    char **to)
{
    int err = MPI_SUCCESS;
    for (int place = places.first; place < places.last && err == MPI_SUCCESS; place++) {
        const int dest = rank_at(plan, place);
        const long long bytes = bytes_of_pair(plan, task, mpilab_bytes_to(plan->exchange, dest));
        err = mpilab_pack(plan->exchange, dest, task->begin, bytes, *to);
        *to += bytes;
    }
    return err;
}

/* Put what has come for this rank itself into its receive buffer. */
static int unpack_own(const struct mpilab_plan *plan, const struct task *task, int source,
                      const char **from)
{
    const long long bytes = bytes_of_pair(plan, task, plan->own_in[source]);
    const char *const begin = *from;
    *from += bytes;
    return mpilab_unpack(plan->exchange, plan->source[source], task->begin, bytes, begin);
}

int travel_pack_up(const struct mpilab_plan *plan, const struct task *task, char *to)
{
    const int end = plan->begin + plan->mates;
    const int err = pack_own(plan, task, task_places(task, 0, plan->begin), &to);
    if (err != MPI_SUCCESS)
        return err;
    return pack_own(plan, task, task_places(task, end, plan->topology->size), &to);
}

/* --- up, what has not come with the counts */
static int post_up(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const int carrier = plan->route->carrier(plan->topology, plan->rank);
    char *next = travel->area[UP], *own = travel->own;
    int err = MPI_SUCCESS;
    for (int mate = 0; mate < plan->mates && err == MPI_SUCCESS; mate++) {
        if (mate == plan->self || plan->out[mate] == NULL)
            continue;
        const long long bytes = bytes_up(plan, task, plan->out[mate]);
        if (rides(plan, task, plan->out[mate]))
            next += bytes;
        else
            err = post_receive(travel, &next, bytes, rank_at(plan, plan->begin + mate));
    }
    if (err != MPI_SUCCESS || carrier == plan->rank || rides(plan, task, plan->own_out))
        return err;
    err = travel_pack_up(plan, task, own);
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
    for (int mate = 0; mate < plan->mates; mate++) {
        travel->at[mate] = from;
        if (mate != plan->self && plan->out[mate] != NULL)
            from += bytes_up(plan, task, plan->out[mate]);
    }
    for (int node = 0; node < plan->topology->nodes && err == MPI_SUCCESS; node++) {
        const struct span places = task_node(plan, task, node);
        if (node == plan->node || places.first >= places.last)
            continue;
        for (int mate = 0; mate < plan->mates && err == MPI_SUCCESS; mate++) {
            if (plan->out[mate] == NULL)
                continue;
            if (mate == plan->self) {
                err = pack_own(plan, task, places, &to);
                continue;
            }
            const long long bytes = bytes_to_places(plan, task, plan->out[mate], places);
            memcpy(to, travel->at[mate], (size_t)bytes);
            to += bytes;
            travel->at[mate] += bytes;
        }
    }
    return err;
}

/* --- across */
static int post_across(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const int *const feeder = mpilab_feeders(plan), served = mpilab_served(plan);
    char *incoming = travel->area[INCOMING], *outgoing = travel->area[OUTGOING];
    int err = MPI_SUCCESS;
    for (int first = 0, last; first < served && err == MPI_SUCCESS; first = last) {
        last = first + 1;
        while (last < served && feeder[last] == feeder[first])
            last++;
        err = post_receive(travel, &incoming, bytes_in(plan, task, first, last), feeder[first]);
    }
    for (int node = 0; node < plan->topology->nodes && err == MPI_SUCCESS; node++)
        if (node != plan->node)
            err = post_send(travel, &outgoing, bytes_out(plan, task, node),
                            plan->route->partner(plan->topology, plan->rank, node));
    return err;
}

/* From "incoming" to "downward", and what is this rank's own to where it belongs. */
static int sort_incoming(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const struct span mates = task_mates(plan, task);
    const char *from = travel->area[INCOMING];
    char *to = travel->area[DOWNWARD];
    int err = MPI_SUCCESS;
    for (int mate = mates.first; mate < mates.last; mate++) {
        travel->at[mate] = to;
        if (mate != plan->self)
            to += bytes_down(plan, task, mate);
    }
    for (int source = 0; source < mpilab_served(plan); source++)
        for (int mate = mates.first; mate < mates.last && err == MPI_SUCCESS; mate++) {
            if (mate == plan->self) {
                err = unpack_own(plan, task, plan->source_begin[mate] + source, &from);
                continue;
            }
            const long long bytes = bytes_of_pair(plan, task, plan->in[mate][source]);
            memcpy(travel->at[mate], from, (size_t)bytes);
            from += bytes;
            travel->at[mate] += bytes;
        }
    return err;
}

/* --- down */
static int post_down(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const struct span mates = task_mates(plan, task);
    char *next = travel->area[DOWNWARD], *handed = travel->handed;
    int err = MPI_SUCCESS;
    for (int mate = 0; mate < plan->mates && is_destination(plan, task) && err == MPI_SUCCESS;
         mate++)
        if (mate != plan->self)
            err = post_receive(travel, &handed, bytes_handed(plan, task, mate),
                               rank_at(plan, plan->begin + mate));
    for (int mate = mates.first; mate < mates.last && err == MPI_SUCCESS; mate++)
        if (mate != plan->self)
            err = post_send(travel, &next, bytes_down(plan, task, mate),
                            rank_at(plan, plan->begin + mate));
    return err;
}

static int take_handed(struct travel *travel, const struct task *task)
{
    const struct mpilab_plan *const plan = travel->plan;
    const char *from = travel->handed;
    int err = MPI_SUCCESS;
    for (int mate = 0; mate < plan->mates && is_destination(plan, task); mate++)
        for (int i = plan->source_begin[mate]; i < plan->source_begin[mate + 1]; i++)
            if (mate != plan->self && err == MPI_SUCCESS)
                err = unpack_own(plan, task, i, &from);
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
    if (err == MPI_SUCCESS && goes_across)
        err = post_across(travel, &across);
    if (err == MPI_SUCCESS && goes_down)
        err = post_down(travel, &down);
    if (err == MPI_SUCCESS && travel->started > 0)
        err = MPI_Waitall(travel->started, travel->requests, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        return err;
    travel->started = 0;
    if (goes_up)
        err = sort_outgoing(travel, &up);
    if (err == MPI_SUCCESS && goes_across)
        err = sort_incoming(travel, &across);
    if (err == MPI_SUCCESS && goes_down)
        err = take_handed(travel, &down);
    return err;
}

/* After an error nothing may come to memory that is freed, and what is being sent has to stay. */
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
    /* Letters have long arrived: whoever waits for that before may sleep once more for it. */
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(plan->tellings, plan->telling, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        abandon(&travel);
    travel_free_memory(&travel);
    return err;
}
