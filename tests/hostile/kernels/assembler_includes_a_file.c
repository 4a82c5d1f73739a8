/* Tries: reading a file into the program while it is compiled
 * Stopped by: the look at the compiler's output; the sandbox shows no secret
 * Status: graded
 * Points: 0
 * Reason: it holds assembler
 */
#include "mpilab.h"

__asm__(".section .rodata\n stolen: .incbin \"/etc/passwd\"\n .byte 0\n .text");
extern const char stolen[] __attribute__((visibility("hidden")));

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)count, (void)datatype, (void)root, (void)comm;
    return *(char *)buffer = stolen[0];
}
