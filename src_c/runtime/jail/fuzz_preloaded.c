/* Loaded before SimGrid where the shim is called with sanitizers (tools/fuzz_jail.py): SMPI loads each
 * rank's copy of the program with RTLD_DEEPBIND, which they refuse. The copies are linked with
 * -Bsymbolic, and need it not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

void *dlopen(const char *library, int flags)
{
    void *(*next)(const char *library, int flags);
    void *const found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &found, sizeof next);
    return next(library, flags & ~RTLD_DEEPBIND);
}
