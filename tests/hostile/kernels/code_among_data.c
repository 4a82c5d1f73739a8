/* Tries: machine code in a constant placed where code is: a system call without assembler
 * Stopped by: the jail: code and data are separate, and data cannot be executed
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"

/* mov $231, %eax; xor %edi, %edi; syscall */
static const unsigned char code[]
    __attribute__((section(".text"))) = {0xb8, 0xe7, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05};

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return ((int (*)(void))code)();
}
