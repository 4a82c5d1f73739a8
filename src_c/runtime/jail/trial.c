/* Links only if wasi-libc and clang's runtime for wasm32 are installed (mpilab/kernels/jail.py). */
#include <stdlib.h>

__attribute__((export_name("trial"))) long long *trial(long long factor)
{
    long long *product = malloc(sizeof *product);
    if (product != NULL)
        *product = (long long)(((__int128)factor * factor) >> 64); /* __multi3 of the runtime */
    return product;
}
