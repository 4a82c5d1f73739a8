/* How a barrier kernel is called. It has no buffers; the recording tells whether it
 * synchronized. */
#include "harness.h"

typedef int barrier_kernel(MPI_Comm);

struct blocks blocks_of_barrier(const struct subject *subject)
{
    (void)subject;
    return (struct blocks){0, 0};
}

int call_barrier(struct subject *subject)
{
    barrier_kernel *const kernel = (barrier_kernel *)subject->kernel;
    return kernel(subject->comm);
}
