/* The buffers of a kernel: as many blocks as its collective needs on this rank. */
#include "harness.h"
#include <stdlib.h>
#include <string.h>

/* The bytes of this many elements; -1 on overflow. */
static int64_t bytes_of(int64_t blocks, int64_t count, int64_t extent)
{
    int64_t elements, bytes;
    const int is_too_large = __builtin_mul_overflow(blocks, count, &elements) ||
                             __builtin_mul_overflow(elements, extent, &bytes) ||
                             bytes > INT64_MAX - 4 * GUARD_BYTES;
    return is_too_large ? -1 : bytes;
}

/* Store what both regions will hold before each call but the first. */
static int prepare_later(struct subject *subject)
{
    const struct mpilab_case *order = subject->order;
    struct region *const regions[] = {&subject->sent, &subject->received};
    const enum stream streams[] = {SEND_STREAM, RECEIVE_STREAM};
    const int64_t calls = order->warmup + order->repetitions - 1;
    const int64_t each = region_total(regions[0]) + region_total(regions[1]);
    const int64_t all = bytes_of(calls, each, 1);
    subject->later = all < 0 ? NULL : malloc((size_t)all);
    if (subject->later == NULL)
        return harness_fail("out of memory: fresh data for %lld calls", (long long)calls);
    unsigned char *to = subject->later;
    for (long call = 1; call <= calls; call++)
        for (int i = 0; i < 2; i++) {
            const int64_t bytes = region_total(regions[i]);
            if (fill_contents(to, bytes, order, call, subject->rank, streams[i], 1) != 0)
                return 1;
            to += bytes;
        }
    return 0;
}

static int fill_buffer(struct subject *subject, struct region *region, enum stream stream,
                       long call)
{
    const int64_t bytes = region_total(region);
    return fill_contents(region->memory, bytes, subject->order, call, subject->rank, stream, 1);
}

int prepare_buffers(struct subject *subject, long call)
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
    if (fill_buffer(subject, &subject->sent, SEND_STREAM, call) != 0 ||
        fill_buffer(subject, &subject->received, RECEIVE_STREAM, call) != 0)
        return 1;
    return order->fresh ? prepare_later(subject) : 0;
}

void renew_buffers(struct subject *subject, long call)
{
    const size_t sent = (size_t)region_total(&subject->sent);
    const size_t received = (size_t)region_total(&subject->received);
    const unsigned char *const from = subject->later + (size_t)(call - 1) * (sent + received);
    allow_guards(&subject->sent);
    allow_guards(&subject->received);
    memcpy(subject->sent.memory, from, sent);
    memcpy(subject->received.memory, from + sent, received);
    forbid_guards(&subject->sent);
    forbid_guards(&subject->received);
}

/* The address of the first element: the data of a type with a lower bound begin there. */
static void *address(const struct region *region, MPI_Datatype type)
{
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    return (char *)region_data(region) - lower_bound;
}

void *sent_data(const struct subject *subject)
{
    return subject->blocks.sent > 0 ? address(&subject->sent, subject->types.send) : NULL;
}

void *received_data(const struct subject *subject)
{
    return subject->blocks.received > 0 ? address(&subject->received, subject->types.receive)
                                        : NULL;
}

int send_count(const struct subject *subject)
{
    return (int)(subject->order->count * subject->types.send_per_receive);
}

int receive_count(const struct subject *subject)
{
    return (int)subject->order->count;
}

int ignored_count(const struct subject *subject, int count)
{
    return subject->order->unused ? -1 : count;
}

MPI_Datatype ignored_type(const struct subject *subject, MPI_Datatype type)
{
    return subject->order->unused ? MPI_DATATYPE_NULL : type;
}
