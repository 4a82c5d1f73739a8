/* How a scatter kernel is called. Only the root has a send buffer. */
#include "harness.h"

typedef int scatter_kernel(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int,
                           MPI_Comm);

struct blocks blocks_of_scatter(const struct subject *subject)
{
    return (struct blocks){subject->rank == subject->root ? subject->size : 0, 1};
}

int call_scatter(struct subject *subject)
{
    scatter_kernel *const kernel = (scatter_kernel *)subject->kernel;
    const int root = subject->root, is_root = subject->rank == root;
    const int in_place = subject->order->in_place && is_root;
    void *const received = in_place ? MPI_IN_PLACE : received_data(subject);
    int sendcount = send_count(subject), recvcount = receive_count(subject);
    MPI_Datatype sendtype = subject->types.send, recvtype = subject->types.receive;
    if (!is_root)
        sendcount = ignored_count(subject, sendcount), sendtype = ignored_type(subject, sendtype);
    if (in_place)
        recvcount = ignored_count(subject, recvcount), recvtype = ignored_type(subject, recvtype);
    return kernel(sent_data(subject), sendcount, sendtype, received, recvcount, recvtype, root,
                  subject->comm);
}
