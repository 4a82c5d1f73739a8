/* osu_allreduce, imb_allreduce: the sum of all blocks reaches every rank. */
#include "osu.h"

static void prepare(const struct task *task)
{
    fill_summand(task->send, task);
    clear(task->receive, 1, task);
}

static void call(const struct task *task)
{
    MPI_Allreduce(task->send, task->receive, summands_of(task), task->summand, MPI_SUM,
                  MPI_COMM_WORLD);
}

static int wrong(const struct task *task)
{
    return differs_from_sum(task->receive, task);
}

const struct collective allreduce = {
    .title = "Allreduce Latency",
    .imb_title = "Allreduce",
    .adds = 1,
    .send = {ONE, ONE},
    .receive = {ONE, ONE},
    .prepare = prepare,
    .call = call,
    .wrong = wrong,
};
