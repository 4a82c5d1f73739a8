/* osu_allgather, imb_allgather: a block of each rank reaches every rank. */
#include "osu.h"

static void prepare(const struct task *task)
{
    fill(task->send, task, task->rank, 0);
    clear(task->receive, task->ranks, task);
}

static void call(const struct task *task)
{
    MPI_Allgather(task->send, (int)task->bytes, task->datatype, task->receive, (int)task->bytes,
                  task->datatype, MPI_COMM_WORLD);
}

static int wrong(const struct task *task)
{
    int blocks = 0;
    for (int from = 0; from < task->ranks; from++)
        blocks += differs(place_of(task->receive, from, task->bytes), task, from, 0);
    return blocks;
}

const struct collective allgather = {
    .title = "Allgather Latency",
    .imb_title = "Allgather",
    .send = {ONE, ONE},
    .receive = {ONE_A_RANK, ONE_A_RANK},
    .prepare = prepare,
    .call = call,
    .wrong = wrong,
};
