/* osu_bcast, imb_bcast: the root's block reaches every rank. */
#include "osu.h"

static void prepare(const struct task *task)
{
    if (task->rank == ROOT)
        fill(task->receive, task, ROOT, 0);
    else
        clear(task->receive, 1, task);
}

static void call(const struct task *task)
{
    MPI_Bcast(task->receive, (int)task->bytes, task->datatype, ROOT, MPI_COMM_WORLD);
}

static int wrong(const struct task *task)
{
    return differs(task->receive, task, ROOT, 0);
}

const struct collective bcast = {
    .title = "Broadcast Latency",
    .imb_title = "Bcast",
    .send = {NONE, NONE},
    .receive = {ONE, ONE},
    .prepare = prepare,
    .call = call,
    .wrong = wrong,
};
