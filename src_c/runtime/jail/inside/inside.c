/* The part of mpilab.h that exists in the jail: a kernel's tuning, and its place. */
#include "mpilab.h"
#include <stdlib.h>

struct mpilab_tuning mpilab_tuning;

MPILAB_IMPORT("mpilab_place") void place_outside(struct mpilab_place *place);

const struct mpilab_place *mpilab_place(void)
{
    static struct mpilab_place here;
    place_outside(&here);
    return &here;
}

/* Memory that a kernel never frees is a leak (runtime/recorder/leftovers.c). The linker lets all calls
 * reach these functions, of wasi-libc too (strdup). */
MPILAB_IMPORT("mpilab_statics") void statics_outside(const void *begin, const void *end);
MPILAB_IMPORT("mpilab_memory_made") void made_outside(const void *memory, size_t bytes);
MPILAB_IMPORT("mpilab_memory_freed") void freed_outside(const void *memory);
extern const unsigned char __global_base, __heap_base; /* of the linker */

#define REAL(name) __real_##name
#define HEAP(name) __wrap_##name
void *REAL(malloc)(size_t bytes), *REAL(calloc)(size_t count, size_t bytes);
void *REAL(realloc)(void *memory, size_t bytes), REAL(free)(void *memory);
void *REAL(aligned_alloc)(size_t alignment, size_t bytes);
int REAL(posix_memalign)(void **memory, size_t alignment, size_t bytes);

static void *made(void *memory, size_t bytes)
{
    made_outside(memory, bytes);
    return memory;
}

void *HEAP(malloc)(size_t bytes)
{
    return made(REAL(malloc)(bytes), bytes);
}

void *HEAP(calloc)(size_t count, size_t bytes)
{
    return made(REAL(calloc)(count, bytes), count * bytes);
}

void *HEAP(realloc)(void *memory, size_t bytes)
{
    void *const now = REAL(realloc)(memory, bytes);
    if (now != NULL || bytes == 0)
        freed_outside(memory);
    return made(now, bytes);
}

void *HEAP(aligned_alloc)(size_t alignment, size_t bytes)
{
    return made(REAL(aligned_alloc)(alignment, bytes), bytes);
}

int HEAP(posix_memalign)(void **memory, size_t alignment, size_t bytes)
{
    const int error = REAL(posix_memalign)(memory, alignment, bytes);
    if (error == 0)
        made_outside(*memory, bytes);
    return error;
}

void HEAP(free)(void *memory)
{
    freed_outside(memory);
    REAL(free)(memory);
}

/* The first call of wasi-libc's malloc takes all memory that there is, so it must come before the
 * harness has buffers there. */
__attribute__((constructor)) static void begin_heap(void)
{
    statics_outside(&__global_base, &__heap_base);
    void *volatile first = malloc(1); /* volatile, or the compiler removes both calls */
    free(first);
}

/* From here on, functions that trampoline.c calls. */
#define JAIL_EXPORT(name) __attribute__((export_name(#name)))

JAIL_EXPORT(jail_tune)
void jail_tune(int segment_bytes, int fanout, int radix, int remap, int budget_bytes,
               int buffer_bytes, int aggregators)
{
    mpilab_tuning = (struct mpilab_tuning){segment_bytes, fanout,       radix,      remap,
                                           budget_bytes,  buffer_bytes, aggregators};
}

int mpilab_copy_attribute(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

/* In one number: the error code, the flag (1 bit) and the value (32 bits). */
JAIL_EXPORT(jail_copy)
unsigned long long jail_copy(MPI_Comm_copy_attr_function *copy, MPI_Comm comm, int key, void *extra,
                             void *value)
{
    void *made = NULL;
    int flag = 0;
    const unsigned long long err = (unsigned)copy(comm, key, extra, value, &made, &flag);
    return err << 33 | (unsigned long long)(flag != 0) << 32 | (unsigned long)made;
}

JAIL_EXPORT(jail_delete)
int jail_delete(MPI_Comm_delete_attr_function *delete, MPI_Comm comm, int key, void *value,
                void *extra)
{
    return delete(comm, key, value, extra);
}

JAIL_EXPORT(jail_combine)
void jail_combine(MPI_User_function *combine, void *in, void *inout, int count, MPI_Datatype type)
{
    combine(in, inout, &count, &type);
}

int MPI_Alloc_mem(MPI_Aint bytes, MPI_Info info, void *memory)
{
    void *const got = bytes < 0 ? NULL : malloc((size_t)bytes);
    (void)info;
    if (got == NULL && bytes != 0)
        return MPI_ERR_NO_MEM;
    *(void **)memory = got;
    return MPI_SUCCESS;
}

int MPI_Free_mem(void *memory)
{
    free(memory);
    return MPI_SUCCESS;
}
