/* Tries: a system call (exit_group) in assembler, bypassing the C library
 * Stopped by: the jail: only C that compiles to WebAssembly is built
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    long number = 231;
    __asm__ volatile("syscall" : "+a"(number) : "D"(0L) : "rcx", "r11", "memory");
    return (int)number;
}
