/* How a bcast kernel is called. The message is in the root's receive buffer. */
#include "harness.h"

typedef int bcast_kernel(void *, int, MPI_Datatype, int, MPI_Comm);

struct blocks blocks_of_bcast(const struct subject *subject)
{
    (void)subject;
    return (struct blocks){0, 1};
}

int call_bcast(struct subject *subject)
{
    bcast_kernel *const kernel = (bcast_kernel *)subject->kernel;
    return kernel(received_data(subject), receive_count(subject), subject->types.receive,
                  subject->root, subject->comm);
}
