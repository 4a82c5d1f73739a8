/* Sums over what the ranks of a node have told each other. */
#include "pieces.h"

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
    const int sources = plan->source_begin[plan->mates];
    long long longest = 0;
    for (int i = 0; i < plan->remote; i++)
        longest = larger(longest, plan->own_out[i]);
    for (int i = 0; i < sources; i++)
        longest = larger(longest, plan->own_in[i]);
    for (int mate = 0; mate < plan->mates; mate++) {
        for (int i = 0; i < plan->remote && plan->out[mate] != NULL; i++)
            longest = larger(longest, plan->out[mate][i]);
        for (int i = 0; i < mpilab_served(plan); i++)
            longest = larger(longest, plan->in[mate][i]);
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

struct span task_mates(const struct mpilab_plan *plan, const struct task *task)
{
    const struct span places = task_places(task, plan->begin, plan->begin + plan->mates);
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
    const int left_out = places.first < plan->begin ? 0 : plan->mates;
    long long sum = 0;
    for (int place = places.first; place < places.last; place++)
        sum += bytes_of_pair(plan, task, row[place - left_out]);
    return sum;
}

long long bytes_up(const struct mpilab_plan *plan, const struct task *task, const long long *row)
{
    const int end = plan->begin + plan->mates;
    return bytes_to_places(plan, task, row, task_places(task, 0, plan->begin)) +
           bytes_to_places(plan, task, row, task_places(task, end, plan->topology->size));
}

long long bytes_out(const struct mpilab_plan *plan, const struct task *task, int node)
{
    const struct span places = task_node(plan, task, node);
    long long sum = 0;
    for (int mate = 0; mate < plan->mates && places.first < places.last; mate++)
        if (plan->out[mate] != NULL)
            sum += bytes_to_places(plan, task, plan->out[mate], places);
    return sum;
}

long long bytes_in(const struct mpilab_plan *plan, const struct task *task, int first, int last)
{
    const struct span mates = task_mates(plan, task);
    long long sum = 0;
    for (int mate = mates.first; mate < mates.last; mate++)
        for (int source = first; source < last; source++)
            sum += bytes_of_pair(plan, task, plan->in[mate][source]);
    return sum;
}

long long bytes_down(const struct mpilab_plan *plan, const struct task *task, int mate)
{
    long long sum = 0;
    for (int source = 0; source < mpilab_served(plan); source++)
        sum += bytes_of_pair(plan, task, plan->in[mate][source]);
    return sum;
}

int is_destination(const struct mpilab_plan *plan, const struct task *task)
{
    const struct span mates = task_mates(plan, task);
    return mates.first <= plan->self && plan->self < mates.last;
}

long long bytes_handed(const struct mpilab_plan *plan, const struct task *task, int mate)
{
    long long sum = 0;
    for (int i = plan->source_begin[mate]; i < plan->source_begin[mate + 1]; i++)
        sum += bytes_of_pair(plan, task, plan->own_in[i]);
    return sum;
}
