/* How an allreduce kernel is called. */
#include "harness.h"

typedef int allreduce_kernel(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

struct blocks blocks_of_allreduce(const struct subject *subject)
{
    (void)subject;
    return (struct blocks){1, 1};
}

int call_allreduce(struct subject *subject)
{
    allreduce_kernel *const kernel = (allreduce_kernel *)subject->kernel;
    const void *const sent = subject->order->in_place ? MPI_IN_PLACE : sent_data(subject);
    return kernel(sent, received_data(subject), receive_count(subject), subject->types.receive,
                  subject->op, subject->comm);
}
