/* osu_scatter, imb_scatter: the root has a block for each rank. */
#include "osu.h"

static void prepare(const struct task *task)
{
    for (int to = 0; task->rank == ROOT && to < task->ranks; to++)
        fill(place_of(task->send, to, task->bytes), task, ROOT, to);
    clear(task->receive, 1, task);
}

static void call(const struct task *task)
{
    MPI_Scatter(task->send, (int)task->bytes, task->datatype, task->receive, (int)task->bytes,
                task->datatype, ROOT, MPI_COMM_WORLD);
}

static int wrong(const struct task *task)
{
    return differs(task->receive, task, ROOT, task->rank);
}

const struct collective scatter = {
    .title = "Scatter Latency",
    .imb_title = "Scatter",
    .send = {ONE_A_RANK, NONE},
    .receive = {ONE, ONE},
    .prepare = prepare,
    .call = call,
    .wrong = wrong,
};
