/* osu_reduce, imb_reduce: the sum of all blocks reaches the root. */
#include "osu.h"

static void prepare(const struct task *task)
{
    fill_summand(task->send, task);
    if (task->rank == ROOT)
        clear(task->receive, 1, task);
}

static void call(const struct task *task)
{
    MPI_Reduce(task->send, task->receive, summands_of(task), task->summand, MPI_SUM, ROOT,
               MPI_COMM_WORLD);
}

static int wrong(const struct task *task)
{
    return task->rank == ROOT && differs_from_sum(task->receive, task);
}

const struct collective reduce = {
    .title = "Reduce Latency",
    .imb_title = "Reduce",
    .adds = 1,
    .send = {ONE, ONE},
    .receive = {ONE, NONE},
    .prepare = prepare,
    .call = call,
    .wrong = wrong,
};
