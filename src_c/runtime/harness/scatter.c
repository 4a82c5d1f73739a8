/* How a scatter kernel is called. Only the root has a send buffer. */
#include "harness.h"

typedef int scatter_kernel(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int,
                           MPI_Comm);

struct blocks blocks_of_scatter(const struct subject *subject)
{
    return (struct blocks){subject->rank == subject->order->root ? subject->size : 0, 1};
}

int call_scatter(struct subject *subject)
{
    scatter_kernel *const kernel = (scatter_kernel *)subject->kernel;
    const int root = subject->order->root;
    const int in_place = subject->order->in_place && subject->rank == root;
    void *const received = in_place ? MPI_IN_PLACE : received_data(subject);
    return kernel(sent_data(subject), send_count(subject), subject->types.send, received,
                  receive_count(subject), subject->types.receive, root, subject->comm);
}
