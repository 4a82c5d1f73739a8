/* The buffers of a kernel: as many blocks as its collective wants on this rank. */
#include "harness.h"

/* Bytes of so many elements; -1 where no number of bytes is so large. */
static int64_t bytes_of(int64_t blocks, int64_t count, int64_t extent)
{
    int64_t elements, bytes;
    const int is_too_large = __builtin_mul_overflow(blocks, count, &elements) ||
                             __builtin_mul_overflow(elements, extent, &bytes) ||
                             bytes > INT64_MAX - 4 * GUARD_BYTES;
    return is_too_large ? -1 : bytes;
}

int prepare_buffers(struct subject *subject)
{
    MPI_Aint lower_bound, send_extent, receive_extent;
    MPI_Type_get_extent(subject->types.send, &lower_bound, &send_extent);
    MPI_Type_get_extent(subject->types.receive, &lower_bound, &receive_extent);
    const struct mpilab_case *order = subject->order;
    send_extent *= subject->types.send_per_receive;
    int64_t sent = bytes_of(subject->blocks.sent, order->count, send_extent);
    int64_t received = bytes_of(subject->blocks.received, order->count, receive_extent);
    if (subject->exchange.sent.counts != NULL) {
        sent = bytes_of(subject->exchange.sent.elements, 1, send_extent);
        received = bytes_of(subject->exchange.received.elements, 1, receive_extent);
    }
    if (sent < 0 || received < 0)
        return harness_fail("rank %d: more bytes in a buffer than 64 bits can count; take fewer "
                            "elements",
                            subject->rank);
    if (make_send_region(&subject->sent, sent) || make_receive_region(&subject->received, received))
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
