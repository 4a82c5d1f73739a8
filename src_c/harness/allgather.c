/* How an allgather kernel is called. */
#include "harness.h"

typedef int allgather_kernel(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

int prepare_allgather(struct subject *subject)
{
    MPI_Aint lower_bound, send_extent, receive_extent;
    MPI_Type_get_extent(subject->types.send, &lower_bound, &send_extent);
    MPI_Type_get_extent(subject->types.receive, &lower_bound, &receive_extent);
    const int64_t count = subject->order->count;
    const int64_t sent = count * subject->types.send_per_receive * send_extent;
    return make_send_region(&subject->sent, sent) ||
           make_receive_region(&subject->received, count * subject->size * receive_extent);
}

int call_allgather(struct subject *subject)
{
    allgather_kernel *const kernel = (allgather_kernel *)subject->kernel;
    const int count = (int)subject->order->count;
    void *const received = region_data(&subject->received);
    if (subject->order->in_place)
        return kernel(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, received, count, subject->types.receive,
                      subject->comm);
    return kernel(region_data(&subject->sent), count * subject->types.send_per_receive,
                  subject->types.send, received, count, subject->types.receive, subject->comm);
}
