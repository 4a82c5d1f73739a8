/* Memory and groups: what a kernel makes without a record. What is still there when the recorder
 * closes gets one then, with the place and the time of the call that made it.
 *
 * Memory that a static variable of the kernel leads to is kept on purpose, for the next call: it is
 * not left over. As in LeakSanitizer, every word is taken for an address. Memory that the kernel has
 * in other ways (getline, say) is not known, and is ignored.
 *
 * The build lets the calls of a kernel's object file reach the functions mpilab_heap_... below
 * (mpilab/kernels/build.py); in the jail, src_c/runtime/jail/inside/inside.c reports them.
 */
#define _GNU_SOURCE
#include "recorder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <link.h>
#endif

/* A kernel that has more at a time is not watched any further. */
enum { MOST_THINGS = 1 << 16 };

struct thing {
    uintptr_t key; /* its address, or the handle of a group */
    size_t bytes;  /* 0 for a group */
    enum mpilab_operation made_by;
    uintptr_t site;
    int64_t made_ns; /* 0 if nothing was being recorded */
    int is_kept;
};
static struct thing *things;
static int used, room;

/* Where the kernel has its static variables, and how an address is written in its memory. */
static const unsigned char *statics_begin, *statics_end;
static uintptr_t memory_begin; /* in the jail, address 0 */
static size_t address_bytes = sizeof(uintptr_t);

void leftover_made(enum mpilab_operation made_by, uintptr_t key, size_t bytes, uintptr_t site)
{
    if (key == 0 || used == MOST_THINGS)
        return;
    if (used == room) {
        const int larger = room == 0 ? 64 : 2 * room;
        struct thing *const moved = realloc(things, (size_t)larger * sizeof *moved);
        if (moved == NULL)
            return;
        things = moved;
        room = larger;
    }
    const int64_t now = recorder_is_on() ? record_clock() : 0;
    things[used++] = (struct thing){key, bytes, made_by, site, now, 0};
}

static int is_group(const struct thing *thing)
{
    return thing->made_by != MPILAB_Alloc_mem && thing->made_by < MPILAB_malloc;
}

/* The latest thing with this key, or -1: groups that are equal may have the same handle. */
static int find(uintptr_t key, int of_groups)
{
    int i = used - 1;
    while (i >= 0 && (things[i].key != key || is_group(&things[i]) != of_groups))
        i--;
    return i;
}

static void drop(int number)
{
    if (number >= 0)
        things[number] = things[--used];
}

void leftover_freed(const void *memory)
{
    drop(find((uintptr_t)memory, 0));
}

void leftovers_inside(const void *memory, const void *begin, const void *end)
{
    memory_begin = (uintptr_t)memory;
    address_bytes = sizeof(uint32_t);
    statics_begin = begin, statics_end = end;
}

/* --- what static variables lead to */
#if defined(__linux__)
static int find_statics(struct dl_phdr_info *object, size_t size, void *nothing)
{
    (void)size, (void)nothing;
    const uintptr_t here = (uintptr_t)&statics_begin;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        const uintptr_t end = begin + object->dlpi_phdr[i].p_memsz;
        if (object->dlpi_phdr[i].p_type == PT_LOAD && begin <= here && here < end) {
            statics_begin = (const unsigned char *)begin;
            statics_end = (const unsigned char *)end;
            return 1;
        }
    }
    return 0;
}
#endif

static int by_key(const void *one, const void *other)
{
    const uintptr_t a = ((const struct thing *)one)->key, b = ((const struct thing *)other)->key;
    return (a > b) - (a < b);
}

/* The memory that an address is in, or NULL. `things` are sorted. */
static struct thing *thing_at(uintptr_t address)
{
    int low = 0, high = used;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (things[middle].key <= address)
            low = middle + 1;
        else
            high = middle;
    }
    struct thing *const thing = low == 0 ? NULL : &things[low - 1];
    const int is_in =
        thing != NULL && (address == thing->key || address - thing->key < thing->bytes);
    return is_in && !is_group(thing) ? thing : NULL;
}

/* `found` are the numbers of things whose memory has not been searched yet. */
static void search(const unsigned char *begin, const unsigned char *end, int found[], int *count)
{
    const size_t apart =
        ((uintptr_t)begin + address_bytes - 1) / address_bytes * address_bytes - (uintptr_t)begin;
    for (begin += apart; begin < end && (size_t)(end - begin) >= address_bytes;
         begin += address_bytes) {
        uintptr_t address = 0; /* only little-endian machines have the jail */
        memcpy(&address, begin, address_bytes);
        if (address == 0)
            continue;
        struct thing *const thing = thing_at(memory_begin + address);
        if (thing == NULL || thing->is_kept)
            continue;
        thing->is_kept = 1;
        found[(*count)++] = (int)(thing - things);
    }
}

static void mark_kept(void)
{
#if defined(__linux__)
    if (memory_begin == 0)
        dl_iterate_phdr(find_statics, NULL);
#endif
    int *const found = malloc((size_t)used * sizeof *found);
    if (found == NULL)
        return;
    qsort(things, (size_t)used, sizeof *things, by_key);
    for (int i = 0; i < used; i++)
        things[i].is_kept = 0;
    int count = 0;
    search(statics_begin, statics_end, found, &count);
    while (count > 0) {
        const struct thing *const thing = &things[found[--count]];
        const unsigned char *const memory = (const unsigned char *)thing->key;
        search(memory, memory + thing->bytes, found, &count);
    }
    free(found);
}

void leftovers_record(int64_t since_ns)
{
    int is_any = 0;
    for (int i = 0; i < used; i++)
        is_any |= things[i].made_ns >= since_ns;
    if (!is_any)
        return;
    mark_kept();
    int left = 0;
    for (int i = 0; i < used; i++) {
        const struct thing *const thing = &things[i];
        if (thing->made_ns < since_ns || thing->is_kept)
            things[left++] = *thing;
        else
            record_leftover(thing->made_by, (int64_t)thing->bytes, thing->site, thing->made_ns);
    }
    used = left;
}

/* --- what kernels call in place of the C library's functions */
#define HEAP(result, name, ...) result mpilab_heap_##name(__VA_ARGS__)

/* The first request that got no memory is the cause of what follows. */
static void note_refusal(size_t bytes, uintptr_t site)
{
    struct mpilab_header *const header = recorder_is_on() ? recorder_header() : NULL;
    if (header == NULL || header->refused_site != 0)
        return;
    header->refused_bytes = (int64_t)bytes;
    header->held_bytes = 0;
    for (int i = 0; i < used; i++)
        header->held_bytes += (int64_t)things[i].bytes;
    header->refused_site = recorder_offset(site);
}

static void *made(enum mpilab_operation by, void *memory, size_t bytes, uintptr_t site)
{
    if (memory == NULL && bytes > 0)
        note_refusal(bytes, site);
    leftover_made(by, (uintptr_t)memory, bytes, site);
    return memory;
}

HEAP(void *, malloc, size_t bytes)
{
    return made(MPILAB_malloc, malloc(bytes), bytes, CALL_SITE);
}

HEAP(void *, calloc, size_t count, size_t bytes)
{
    return made(MPILAB_calloc, calloc(count, bytes), count * bytes, CALL_SITE);
}

HEAP(void *, realloc, void *memory, size_t bytes)
{
    const int before = find((uintptr_t)memory, 0);
    void *const now = realloc(memory, bytes);
    if (now != NULL || bytes == 0)
        drop(before);
    return made(MPILAB_realloc, now, bytes, CALL_SITE);
}

HEAP(void *, aligned_alloc, size_t alignment, size_t bytes)
{
    return made(MPILAB_aligned_alloc, aligned_alloc(alignment, bytes), bytes, CALL_SITE);
}

HEAP(int, posix_memalign, void **memory, size_t alignment, size_t bytes)
{
    const int error = posix_memalign(memory, alignment, bytes);
    if (error == ENOMEM)
        note_refusal(bytes, CALL_SITE);
    if (error == 0)
        leftover_made(MPILAB_posix_memalign, (uintptr_t)*memory, bytes, CALL_SITE);
    return error;
}

HEAP(char *, strdup, const char *text)
{
    return made(MPILAB_strdup, strdup(text), strlen(text) + 1, CALL_SITE);
}

HEAP(char *, strndup, const char *text, size_t most)
{
    return made(MPILAB_strndup, strndup(text, most), strnlen(text, most) + 1, CALL_SITE);
}

HEAP(void, free, void *memory)
{
    leftover_freed(memory);
    free(memory);
}

/* --- MPI's calls */
int MPI_Alloc_mem(MPI_Aint bytes, MPI_Info info, void *memory)
{
    const int err = PMPI_Alloc_mem(bytes, info, memory);
    if (recorder_error_class(err) == MPI_ERR_NO_MEM)
        note_refusal((size_t)bytes, CALL_SITE);
    if (err == MPI_SUCCESS)
        leftover_made(MPILAB_Alloc_mem, *(uintptr_t *)memory, (size_t)bytes, CALL_SITE);
    recorder_note_failure("MPI_Alloc_mem", CALL_SITE, err);
    return err;
}

int MPI_Free_mem(void *memory)
{
    leftover_freed(memory);
    const int err = PMPI_Free_mem(memory);
    recorder_note_failure("MPI_Free_mem", CALL_SITE, err);
    return err;
}

static int end_group(enum mpilab_operation by, const char *name, const MPI_Group *made,
                     uintptr_t site, int err)
{
    recorder_note_failure(name, site, err);
    if (err == MPI_SUCCESS && *made != MPI_GROUP_EMPTY && *made != MPI_GROUP_NULL)
        leftover_made(by, (uintptr_t)*made, 0, site);
    return err;
}

#define UNWRAP(...) __VA_ARGS__
#define GROUP(name, parameters, values)                                \
    int MPI_##name(UNWRAP parameters, MPI_Group *made)                 \
    {                                                                  \
        return end_group(MPILAB_##name, "MPI_" #name, made, CALL_SITE, \
                         PMPI_##name(UNWRAP values, made));            \
    }

GROUP(Comm_group, (MPI_Comm comm), (comm))
GROUP(Group_incl, (MPI_Group group, int n, const int ranks[]), (group, n, ranks))
GROUP(Group_excl, (MPI_Group group, int n, const int ranks[]), (group, n, ranks))
GROUP(Group_range_incl, (MPI_Group group, int n, int ranges[][3]), (group, n, ranges))
GROUP(Group_range_excl, (MPI_Group group, int n, int ranges[][3]), (group, n, ranges))
GROUP(Group_union, (MPI_Group one, MPI_Group other), (one, other))
GROUP(Group_intersection, (MPI_Group one, MPI_Group other), (one, other))
GROUP(Group_difference, (MPI_Group one, MPI_Group other), (one, other))

int MPI_Group_free(MPI_Group *group)
{
    const MPI_Group handle = group == NULL ? MPI_GROUP_NULL : *group;
    const int err = PMPI_Group_free(group);
    if (err == MPI_SUCCESS)
        drop(find((uintptr_t)handle, 1));
    recorder_note_failure("MPI_Group_free", CALL_SITE, err);
    return err;
}
