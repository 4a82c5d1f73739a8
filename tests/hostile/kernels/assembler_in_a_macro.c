/* Tries: assembler, with its keyword assembled by the preprocessor
 * Stopped by: the jail: only C that compiles to WebAssembly is built
 * Status: ungradable
 * Points: 0
 * Reason: it could not be built in isolation
 */
#include "mpilab.h"
#define PASTE(a, b) a##b

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    PASTE(__as, m__) volatile("int $0x80" : : "a"(1), "b"(0));
    return MPI_SUCCESS;
}
