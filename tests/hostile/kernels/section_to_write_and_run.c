/* Tries: a section that is both writable and executable
 * Stopped by: the jail: code and data are separate, and data cannot be executed
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"

static unsigned char area[64] __attribute__((section(".mine,\"awx\",@progbits#"), used)) = {0xc3};

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)count, (void)datatype, (void)root, (void)comm;
    area[1] = *(unsigned char *)buffer;
    ((void (*)(void))area)();
    return MPI_SUCCESS;
}
