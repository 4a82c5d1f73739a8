/* How a gather kernel is called. Only the root has a receive buffer. */
#include "harness.h"

typedef int gather_kernel(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int,
                          MPI_Comm);

struct blocks blocks_of_gather(const struct subject *subject)
{
    return (struct blocks){1, subject->rank == subject->root ? subject->size : 0};
}

int call_gather(struct subject *subject)
{
    gather_kernel *const kernel = (gather_kernel *)subject->kernel;
    const int root = subject->root, is_root = subject->rank == root;
    const int in_place = subject->order->in_place && is_root;
    const void *const sent = in_place ? MPI_IN_PLACE : sent_data(subject);
    int sendcount = send_count(subject), recvcount = receive_count(subject);
    MPI_Datatype sendtype = subject->types.send, recvtype = subject->types.receive;
    if (in_place)
        sendcount = ignored_count(subject, sendcount), sendtype = ignored_type(subject, sendtype);
    if (!is_root)
        recvcount = ignored_count(subject, recvcount), recvtype = ignored_type(subject, recvtype);
    return kernel(sent, sendcount, sendtype, received_data(subject), recvcount, recvtype, root,
                  subject->comm);
}
