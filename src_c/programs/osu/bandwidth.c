/* osu_bw: a window of messages in one direction, then a short reply once all have arrived. */
#include "osu.h"
#include <stdlib.h>

enum { TAG = 100, ANSWER_TAG = 101, ANSWER_BYTES = 4 };

static MPI_Request *new_requests(int window)
{
    MPI_Request *requests = new_buffer(window * sizeof(MPI_Request));
    for (int i = 0; i < window; i++)
        requests[i] = MPI_REQUEST_NULL;
    return requests;
}

/* The requests of a window are allocated once, because allocation is not to be measured. */
static MPI_Request *requests_of(const struct task *task)
{
    static MPI_Request *requests;
    if (requests == NULL)
        requests = new_requests(task->window);
    return requests;
}

static void send_window(const struct task *task)
{
    MPI_Request *requests = requests_of(task);
    char answer[ANSWER_BYTES];
    for (int i = 0; i < task->window; i++)
        MPI_Isend(task->send, (int)task->bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(task->window, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(answer, ANSWER_BYTES, MPI_CHAR, 1, ANSWER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* As in OMB, all messages of a window are received in the same place, so that a window of large
 * messages does not measure how fast new memory is accessed. They all hold the same data. */
static void receive_window(const struct task *task)
{
    MPI_Request *requests = requests_of(task);
    const char answer[ANSWER_BYTES] = {0};
    for (int i = 0; i < task->window; i++)
        MPI_Irecv(task->receive, (int)task->bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(task->window, requests, MPI_STATUSES_IGNORE);
    MPI_Send(answer, ANSWER_BYTES, MPI_CHAR, 0, ANSWER_TAG, MPI_COMM_WORLD);
}

static double megabytes_per_second(double seconds, const struct task *task, long iterations)
{
    return (double)task->bytes / 1e6 * iterations * task->window / seconds;
}

const struct exchange bandwidth = {
    .title = "Bandwidth",
    .column = "Bandwidth (MB/s)",
    .is_answered = 0,
    .side = {send_window, receive_window},
    .figure = megabytes_per_second,
};
