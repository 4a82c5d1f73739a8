/* osu_alltoallv, imb_alltoallv: each rank has a block for each rank. As in OMB, all are of the same size. */
#include "osu.h"

static void prepare(const struct task *task)
{
    for (int to = 0; to < task->ranks; to++)
        fill(place_of(task->send, to, task->bytes), task, task->rank, to);
    clear(task->receive, task->ranks, task);
}

static void call(const struct task *task)
{
    MPI_Alltoallv(task->send, task->counts, task->places, task->datatype, task->receive,
                  task->counts, task->places, task->datatype, MPI_COMM_WORLD);
}

static int wrong(const struct task *task)
{
    int blocks = 0;
    for (int from = 0; from < task->ranks; from++)
        blocks += differs(place_of(task->receive, from, task->bytes), task, from, task->rank);
    return blocks;
}

const struct collective alltoallv = {
    .title = "All-to-Allv Personalized Exchange Latency",
    .imb_title = "Alltoallv",
    .send = {ONE_A_RANK, ONE_A_RANK},
    .receive = {ONE_A_RANK, ONE_A_RANK},
    .prepare = prepare,
    .call = call,
    .wrong = wrong,
};
