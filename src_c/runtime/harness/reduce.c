/* How a reduce kernel is called. Only the root has a receive buffer. */
#include "harness.h"

typedef int reduce_kernel(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);

struct blocks blocks_of_reduce(const struct subject *subject)
{
    return (struct blocks){1, subject->rank == subject->root ? 1 : 0};
}

int call_reduce(struct subject *subject)
{
    reduce_kernel *const kernel = (reduce_kernel *)subject->kernel;
    const int root = subject->root;
    const int in_place = subject->order->in_place && subject->rank == root;
    const void *const sent = in_place ? MPI_IN_PLACE : sent_data(subject);
    return kernel(sent, received_data(subject), receive_count(subject), subject->types.receive,
                  subject->op, root, subject->comm);
}
