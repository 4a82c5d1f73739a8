/* Loading the shared object with the kernel. */
#define _GNU_SOURCE /* for memmem */
#include "loaded.h"
#include "harness.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char OPENS_JAIL[] = "mpilab_jail_open";

int is_jailed(const char *library)
{
    const int file = open(library, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0)
        return 0;
    const size_t bytes = fstat(file, &about) == 0 ? (size_t)about.st_size : 0;
    void *const all = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (all == MAP_FAILED)
        return 0;
    const int is_there = memmem(all, bytes, OPENS_JAIL, sizeof OPENS_JAIL) != NULL;
    munmap(all, bytes);
    return is_there;
}

int load(const char *library, const char *function, struct loaded *loaded)
{
    /* Never unloaded: the recorder in it holds callbacks that MPI may still call. */
    loaded->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (loaded->handle == NULL)
        return harness_fail("%s", dlerror());
    /* ISO C has no cast from void * to a function; POSIX prescribes this one. */
    *(void **)&loaded->kernel = dlsym(loaded->handle, function);
    *(void **)&loaded->open = dlsym(loaded->handle, "mpilab_recorder_open");
    *(void **)&loaded->watch = dlsym(loaded->handle, "mpilab_recorder_watch");
    *(void **)&loaded->strict = dlsym(loaded->handle, "mpilab_recorder_strict");
    *(void **)&loaded->finish = dlsym(loaded->handle, "mpilab_recorder_finish");
    *(void **)&loaded->close = dlsym(loaded->handle, "mpilab_recorder_close");
    *(void **)&loaded->pause = dlsym(loaded->handle, "mpilab_recorder_pause");
    *(void **)&loaded->pretend = dlsym(loaded->handle, "mpilab_pretend_place");
    *(void **)&loaded->open_jail = dlsym(loaded->handle, OPENS_JAIL);
    *(void **)&loaded->allocate = dlsym(loaded->handle, "mpilab_jail_allocate");
    *(void **)&loaded->release = dlsym(loaded->handle, "mpilab_jail_free");
    loaded->tuning = dlsym(loaded->handle, "mpilab_tuning");
    loaded->lent_file = dlsym(loaded->handle, "mpilab_lent_file");
    loaded->most_staged = dlsym(loaded->handle, "mpilab_most_staged");
    if (loaded->kernel == NULL)
        return harness_fail("%s: no function %s in it", library, function);
    if (loaded->open == NULL || loaded->watch == NULL || loaded->strict == NULL ||
        loaded->finish == NULL || loaded->close == NULL || loaded->pretend == NULL ||
        loaded->tuning == NULL)
        return harness_fail("%s: no recorder in it; build it with mpilab", library);
    return 0;
}
