/* osu_latency: a ping-pong; half the time of a round trip. */
#include "osu.h"

enum { TAG = 1 };

static void ping(const struct task *task)
{
    MPI_Send(task->send, (int)task->bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(task->receive, (int)task->bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pong(const struct task *task)
{
    MPI_Recv(task->receive, (int)task->bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(task->send, (int)task->bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
}

static double one_way_us(double seconds, const struct task *task, long iterations)
{
    (void)task;
    return seconds * 1e6 / iterations / 2;
}

const struct exchange latency = {
    .title = "Latency",
    .column = "Latency (us)",
    .is_answered = 1,
    .side = {ping, pong},
    .figure = one_way_us,
};
