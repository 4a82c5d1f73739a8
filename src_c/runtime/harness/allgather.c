/* How an allgather kernel is called. */
#include "harness.h"

typedef int allgather_kernel(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

struct blocks blocks_of_allgather(const struct subject *subject)
{
    return (struct blocks){1, subject->size};
}

int call_allgather(struct subject *subject)
{
    allgather_kernel *const kernel = (allgather_kernel *)subject->kernel;
    void *const received = received_data(subject);
    if (subject->order->in_place)
        return kernel(MPI_IN_PLACE, ignored_count(subject, 0), MPI_DATATYPE_NULL, received,
                      receive_count(subject), subject->types.receive, subject->comm);
    return kernel(sent_data(subject), send_count(subject), subject->types.send, received,
                  receive_count(subject), subject->types.receive, subject->comm);
}
