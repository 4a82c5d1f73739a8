/* osu_gather, imb_gather: a block of each rank reaches the root. */
#include "osu.h"

static void prepare(const struct task *task)
{
    fill(task->send, task, task->rank, ROOT);
    if (task->rank == ROOT)
        clear(task->receive, task->ranks, task);
}

static void call(const struct task *task)
{
    MPI_Gather(task->send, (int)task->bytes, task->datatype, task->receive, (int)task->bytes,
               task->datatype, ROOT, MPI_COMM_WORLD);
}

static int wrong(const struct task *task)
{
    int blocks = 0;
    for (int from = 0; task->rank == ROOT && from < task->ranks; from++)
        blocks += differs(place_of(task->receive, from, task->bytes), task, from, ROOT);
    return blocks;
}

const struct collective gather = {
    .title = "Gather Latency",
    .imb_title = "Gather",
    .send = {ONE, ONE},
    .receive = {ONE_A_RANK, NONE},
    .prepare = prepare,
    .call = call,
    .wrong = wrong,
};
