/* How a collective is measured, following OMB; IMB measures in the same manner.
 *
 * Each rank times its own calls, from its own entry to its own return, with a barrier after each
 * call, and divides the sum by the number of calls. The table shows the mean of these means over
 * the ranks, and with -f the smallest and the largest of them. A rank that returns early (the root
 * of a bcast) lowers the mean: it is not the time that the operation takes from the first rank's
 * entry to the last rank's return.
 */
#include "osu.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static int blocks_in(enum blocks held, int ranks)
{
    return held == ONE_A_RANK ? ranks : held == ONE ? 1 : 0;
}

static int holds_all(const struct collective *collective)
{
    return collective->send[0] == ONE_A_RANK || collective->receive[0] == ONE_A_RANK;
}

/* The largest block that memory allows. Displacements of blocks must fit into an int, too. */
static size_t largest_block(const struct collective *collective, const struct options *options,
                            int rank, int ranks)
{
    const size_t memory = options->memory < INT_MAX ? options->memory : INT_MAX;
    const size_t allowed = holds_all(collective) ? memory / (size_t)ranks : memory;
    if (options->largest <= allowed)
        return options->largest;
    if (rank == 0)
        fprintf(stderr, "Warning: blocks of more than %zu bytes are left out; -M allows more.\n",
                allowed);
    return allowed;
}

/* The smallest block with data. IMB adds numbers of MPI_FLOAT, so its blocks hold whole ones. */
static size_t smallest_block(const struct collective *collective, const struct options *options)
{
    const size_t whole = sizeof(float);
    if (!collective->adds || options->suite == OMB)
        return options->smallest;
    return (options->smallest + whole - 1) / whole * whole;
}

static double timed_call(const struct collective *collective, const struct task *task)
{
    const double begin = MPI_Wtime();
    collective->call(task);
    const double end = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    return end - begin;
}

/* Fill the buffers, and clear what the untimed calls have left in them. */
static void prepare(const struct collective *collective, const struct task *task, long warmup)
{
    collective->prepare(task);
    for (long i = 0; i < warmup; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        collective->call(task);
    }
    if (warmup > 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        collective->prepare(task);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Measure one message size; returns the number of wrong blocks on all ranks. */
static int measure(const struct collective *collective, const struct options *options,
                   struct task *task)
{
    const long iterations = iterations_of(options, task->bytes);
    const long warmup = warmup_of(options, task->bytes);
    double seconds = 0;
    int wrong = 0;
    for (int rank = 0; rank < task->ranks; rank++) {
        task->counts[rank] = (int)task->bytes;
        task->places[rank] = rank * (int)task->bytes;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (task->iteration = 0; task->iteration < warmup + iterations; task->iteration++) {
        if (options->validate)
            prepare(collective, task, options->inner_warmup);
        const double taken = timed_call(collective, task);
        if (options->validate)
            wrong += collective->wrong(task) > 0;
        if (task->iteration >= warmup)
            seconds += taken;
    }
    const int errors = options->validate ? sum_over_ranks(wrong) : 0;
    if (options->suite == IMB)
        print_imb_row(options, 1, task->bytes, seconds * 1e6 / iterations, iterations, errors);
    else
        print_collective_row(options, task->bytes, seconds * 1e6 / iterations, iterations, errors);
    return errors;
}

size_t run_collective(const struct collective *collective, const struct options *options)
{
    struct task task = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &task.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &task.ranks);
    const size_t largest = largest_block(collective, options, task.rank, task.ranks);
    const int place = task.rank != ROOT;
    task.send = new_buffer(largest * blocks_in(collective->send[place], task.ranks));
    task.receive = new_buffer(largest * blocks_in(collective->receive[place], task.ranks));
    task.counts = new_buffer(task.ranks * sizeof(int));
    task.places = new_buffer(task.ranks * sizeof(int));

    const int is_imb = options->suite == IMB;
    task.datatype = is_imb ? MPI_BYTE : MPI_CHAR;
    task.summand = is_imb ? MPI_FLOAT : MPI_CHAR;
    task.summand_bytes = is_imb ? (int)sizeof(float) : 1;
    size_t failed = 0;
    if (is_imb) {
        print_imb_head(options, collective->imb_title, 0, largest);
        measure(collective, options, &task); /* no bytes: IMB's first row */
    } else {
        print_title("\n", collective->title);
        print_collective_columns(options, 1);
    }
    for (task.bytes = smallest_block(collective, options); task.bytes <= largest && !failed;
         task.bytes *= 2)
        if (measure(collective, options, &task) > 0)
            failed = task.bytes;

    free(task.places);
    free(task.counts);
    free(task.receive);
    free(task.send);
    return failed;
}
