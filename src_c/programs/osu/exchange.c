/* How two ranks are measured, following OMB 7.
 *
 * Rank 0 takes the time. Each iteration consists of some untimed exchanges (-u) and a timed one.
 */
#include "osu.h"
#include <stdlib.h>

static int expects(const struct exchange *exchange, const struct task *task)
{
    return task->rank == 1 || exchange->is_answered;
}

/* One iteration; returns the seconds that its last exchange took on this rank. */
static double iterate(const struct exchange *exchange, const struct options *options,
                      const struct task *task)
{
    if (options->validate)
        fill(task->send, task, task->rank, 1 - task->rank);
    for (long i = 0; i < options->inner_warmup; i++)
        exchange->side[task->rank](task);
    if (options->validate) {
        clear(task->receive, 1, task);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const double begin = MPI_Wtime();
    exchange->side[task->rank](task);
    return MPI_Wtime() - begin;
}

/* Measure one message size; returns the number of wrong messages on both ranks. */
static int measure(const struct exchange *exchange, const struct options *options,
                   struct task *task)
{
    const long iterations = iterations_of(options, task->bytes);
    const long warmup = warmup_of(options, task->bytes);
    double seconds = 0;
    int wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (task->iteration = 0; task->iteration < warmup + iterations; task->iteration++) {
        const double taken = iterate(exchange, options, task);
        if (task->iteration >= warmup)
            seconds += taken;
        if (options->validate && expects(exchange, task))
            wrong += differs(task->receive, task, 1 - task->rank, task->rank);
    }
    const int errors = options->validate ? sum_over_ranks(wrong) : 0;
    const double figure = exchange->figure(seconds, task, iterations);
    print_exchange_row(options, task->bytes, figure, errors);
    return errors;
}

size_t run_exchange(const struct exchange *exchange, const struct options *options)
{
    struct task task = {.window = options->window};
    MPI_Comm_rank(MPI_COMM_WORLD, &task.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &task.ranks);
    task.send = new_buffer(options->largest);
    task.receive = new_buffer(options->largest);

    print_title("", exchange->title);
    print_exchange_columns(options, exchange->column);
    size_t failed = 0;
    for (task.bytes = options->smallest; task.bytes <= options->largest && !failed; task.bytes *= 2)
        if (measure(exchange, options, &task) > 0)
            failed = task.bytes;

    free(task.receive);
    free(task.send);
    return failed;
}
