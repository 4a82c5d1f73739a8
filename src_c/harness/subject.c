/* The buffers of a kernel: as many blocks as its collective wants on this rank. */
#include "harness.h"

int prepare_buffers(struct subject *subject)
{
    MPI_Aint lower_bound, send_extent, receive_extent;
    MPI_Type_get_extent(subject->types.send, &lower_bound, &send_extent);
    MPI_Type_get_extent(subject->types.receive, &lower_bound, &receive_extent);
    const struct mpilab_case *order = subject->order;
    const int64_t sent = order->count * subject->types.send_per_receive * send_extent;
    if (make_send_region(&subject->sent, subject->blocks.sent * sent) != 0 ||
        make_receive_region(&subject->received,
                            subject->blocks.received * order->count * receive_extent) != 0)
        return 1;
    fill_region(&subject->sent, order->seed, subject->rank, SEND_STREAM);
    fill_region(&subject->received, order->seed, subject->rank, RECEIVE_STREAM);
    return 0;
}

void *sent_data(const struct subject *subject)
{
    return subject->blocks.sent > 0 ? region_data(&subject->sent) : NULL;
}

void *received_data(const struct subject *subject)
{
    return subject->blocks.received > 0 ? region_data(&subject->received) : NULL;
}

int send_count(const struct subject *subject)
{
    return (int)(subject->order->count * subject->types.send_per_receive);
}

int receive_count(const struct subject *subject)
{
    return (int)subject->order->count;
}
