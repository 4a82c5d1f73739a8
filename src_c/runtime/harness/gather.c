/* How a gather kernel is called. Only the root has a receive buffer. */
#include "harness.h"

typedef int gather_kernel(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int,
                          MPI_Comm);

struct blocks blocks_of_gather(const struct subject *subject)
{
    return (struct blocks){1, subject->rank == subject->order->root ? subject->size : 0};
}

int call_gather(struct subject *subject)
{
    gather_kernel *const kernel = (gather_kernel *)subject->kernel;
    const int root = subject->order->root;
    const int in_place = subject->order->in_place && subject->rank == root;
    const void *const sent = in_place ? MPI_IN_PLACE : sent_data(subject);
    return kernel(sent, send_count(subject), subject->types.send, received_data(subject),
                  receive_count(subject), subject->types.receive, root, subject->comm);
}
