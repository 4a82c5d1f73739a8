/* What a kernel in the jail can call, and the tables that it cannot reach.
 *
 * MPI_* are the recorder's wrappers, PMPI_* go past them: those ask only for what is known here.
 */
#include "jail.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE = 65536,        /* of WebAssembly */
    NULL_ZONE = 4096,    /* at the beginning of the memory: what is at NULL cannot be read */
    MOST_PAGES = 16384,  /* 1 GiB for the kernel itself */
    MOST_ARENAS = 16384, /* and as much for what the harness puts there */
    MOST_HANDLES = 1 << 20
};
#define memory jail_memory
static int runs;         /* is a kernel running? */
static unsigned call_of; /* how many have begun */

_Noreturn void jail_trap(const char *where, const char *why)
{
    int rank = -1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char text[300];
    const int bytes = snprintf(text, sizeof text, "jail: rank %d: %s: %s\n", rank, where, why);
    if (write(2, text, (size_t)bytes) < 0)
        raise(SIGABRT);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    abort();
}

static void need_kernel(const char *call)
{
    if (!runs)
        jail_trap(call, "called while no kernel ran");
}

/* --- memory */

void *span(const char *call, u32 at, int64_t count, int64_t bytes)
{
    if (at == 0 || count < 0)
        return NULL;
    const __int128 end = (__int128)at + (__int128)count * bytes;
    if (at < NULL_ZONE || end > (__int128)memory->size)
        jail_trap(call, "an argument points outside of the kernel's memory");
    return memory->data + at;
}

static void *must_span(const char *call, u32 at, int64_t bytes)
{
    if (at == 0)
        jail_trap(call, "an argument is NULL");
    return span(call, at, 1, bytes);
}

static u32 load(const char *call, u32 at)
{
    u32 value;
    memcpy(&value, must_span(call, at, sizeof value), sizeof value);
    return value;
}

static void store(const char *call, u32 at, u32 value)
{
    memcpy(must_span(call, at, sizeof value), &value, sizeof value);
}

/* Memory that the harness takes for its buffers: whole pages, which the kernel's own malloc never
 * hands out. They are given back by the page and used again. */
static struct arena {
    u32 at, pages;
    int is_free;
} *arenas;
static u32 arena_count, arena_pages;

void *mpilab_jail_allocate(size_t bytes)
{
    if (bytes > (size_t)MOST_ARENAS * PAGE)
        return NULL;
    const u32 pages = (u32)((bytes + PAGE - 1) / PAGE) + (bytes == 0);
    for (u32 i = 0; i < arena_count; i++)
        if (arenas[i].is_free && arenas[i].pages >= pages) {
            arenas[i].is_free = 0;
            return memory->data + arenas[i].at;
        }
    if (pages > MOST_ARENAS - arena_pages)
        return NULL;
    struct arena *const more = realloc(arenas, (arena_count + 1) * sizeof *arenas);
    if (more == NULL)
        return NULL;
    arenas = more;
    const u32 before = jail_grow(pages);
    if (before == (u32)-1)
        return NULL;
    arena_pages += pages;
    arenas[arena_count++] = (struct arena){before * PAGE, pages, 0};
    return memory->data + before * (size_t)PAGE;
}

void mpilab_jail_free(void *outside)
{
    for (u32 i = 0; i < arena_count; i++)
        if (memory->data + arenas[i].at == (uint8_t *)outside)
            arenas[i].is_free = 1;
}

u32 jail_address(const void *outside)
{
    if (outside == NULL)
        return 0;
    if (outside == MPI_IN_PLACE)
        return JAIL_IN_PLACE;
    const uint8_t *const at = outside;
    if (at < memory->data || at > memory->data + memory->size)
        jail_trap("the harness", "a buffer is not in the kernel's memory");
    return (u32)(at - memory->data);
}

/* --- handles */

enum kind { H_COMM, H_DATATYPE, H_FILE, H_GROUP, H_INFO, H_MESSAGE, H_OP, H_REQUEST, KINDS };
static const char *const what_it_is[KINDS] = {"communicator", "datatype", "file",      "group",
                                              "info object",  "message",  "operation", "request"};

/* What one element of a datatype is, in bytes from its address: how far it reaches by its bounds
 * (low to high is the extent) and by its data. */
struct bounds {
    int64_t size, low, high, true_low, true_high;
};

struct handle {
    void *native;         /* NULL: the place is free */
    int is_lent;          /* for this call, or for ever (what MPI has made): not to be freed */
    int is_fixed;         /* for ever */
    unsigned made;        /* by which call of the kernel */
    unsigned taken;       /* by which array of requests: none may have it twice */
    struct bounds bounds; /* of a datatype */
};
static struct table {
    struct handle *all; /* from 1 on: 0 is the null handle */
    u32 count, *free_places, frees;
} tables[KINDS];

static void *null_of(enum kind kind)
{
    void *const nulls[KINDS] = {[H_COMM] = MPI_COMM_NULL,       [H_DATATYPE] = MPI_DATATYPE_NULL,
                                [H_FILE] = MPI_FILE_NULL,       [H_GROUP] = MPI_GROUP_NULL,
                                [H_INFO] = MPI_INFO_NULL,       [H_OP] = MPI_OP_NULL,
#ifndef MPILAB_SIMULATED
                                [H_MESSAGE] = MPI_MESSAGE_NULL,
#endif
                                [H_REQUEST] = MPI_REQUEST_NULL};
    return nulls[kind];
}

static struct handle *handle_at(const char *call, enum kind kind, u32 at)
{
    struct table *const table = &tables[kind];
    if (at == 0)
        return NULL;
    if (at >= table->count || table->all[at].native == NULL) {
        char why[100];
        snprintf(why, sizeof why, "an argument is no %s, or one that was freed", what_it_is[kind]);
        jail_trap(call, why);
    }
    if (kind == H_REQUEST && table->all[at].made != call_of)
        jail_trap(call, "the request is one of an earlier call of the kernel");
    return &table->all[at];
}

static void *native(const char *call, enum kind kind, u32 at)
{
    struct handle *const handle = handle_at(call, kind, at);
    return handle == NULL ? null_of(kind) : handle->native;
}

/* The same for a handle that the call frees. */
static void *release(const char *call, enum kind kind, u32 at)
{
    struct handle *const handle = handle_at(call, kind, at);
    if (handle != NULL && handle->is_lent)
        jail_trap(call, "it would free what the kernel has not made");
    return handle == NULL ? null_of(kind) : handle->native;
}

static u32 new_handle(enum kind kind, void *value)
{
    struct table *const table = &tables[kind];
    u32 at;
    if (value == null_of(kind))
        return 0;
    if (table->frees > 0) {
        at = table->free_places[--table->frees];
    } else {
        const u32 count = table->count == 0 ? 1 : table->count;
        if (count == MOST_HANDLES)
            jail_trap("MPI", "the kernel has made more handles than it may have");
        /* Grows by halves, so that it seldom does. */
        if ((count & (count - 1)) == 0) {
            struct handle *const all = realloc(table->all, 2 * count * sizeof *all);
            u32 *const places = realloc(table->free_places, 2 * count * sizeof *places);
            if (all == NULL || places == NULL)
                jail_trap("MPI", "no memory for one more handle");
            table->all = all, table->free_places = places;
        }
        at = count, table->count = count + 1;
    }
    table->all[at] = (struct handle){.native = value, .made = call_of};
    return at;
}

static void drop(enum kind kind, u32 at)
{
    tables[kind].all[at].native = NULL;
    tables[kind].free_places[tables[kind].frees++] = at;
}

/* A handle's number after a call that may have freed or replaced it. */
static u32 changed(enum kind kind, u32 at, void *now)
{
    if (at == 0)
        return new_handle(kind, now);
    if (now == null_of(kind)) {
        drop(kind, at);
        return 0;
    }
    tables[kind].all[at].native = now;
    return at;
}

static void update(const char *call, enum kind kind, u32 address, void *now)
{
    store(call, address, changed(kind, load(call, address), now));
}

static void made(const char *call, enum kind kind, u32 address, void *now)
{
    store(call, address, new_handle(kind, now));
}

/* An array of handles; the caller gives it back. No request may be in it twice: MPI would complete,
 * and free, it twice. */
static void *take(const char *call, enum kind kind, u32 address, int count)
{
    static unsigned arrays;
    const char *const from = span(call, address, count, sizeof(u32));
    if (from == NULL || count <= 0)
        return NULL;
    void **const taken = malloc((size_t)count * sizeof *taken);
    if (taken == NULL)
        jail_trap(call, "no memory for so many handles");
    arrays++;
    for (int i = 0; i < count; i++) {
        u32 at;
        memcpy(&at, from + sizeof at * (size_t)i, sizeof at);
        struct handle *const handle = handle_at(call, kind, at);
        taken[i] = handle == NULL ? null_of(kind) : handle->native;
        if (handle == NULL || kind != H_REQUEST)
            continue;
        if (handle->taken == arrays)
            jail_trap(call, "the same request is in the array twice");
        handle->taken = arrays;
    }
    return taken;
}

static void give(enum kind kind, u32 address, int count, void *given, int has_changed)
{
    void **const natives = given;
    for (int i = 0; natives != NULL && has_changed && i < count; i++) {
        u32 at;
        uint8_t *const place = memory->data + address + sizeof at * (size_t)i;
        memcpy(&at, place, sizeof at);
        at = changed(kind, at, natives[i]);
        memcpy(place, &at, sizeof at);
    }
    free(natives);
}

/* What MPI has: the same numbers in every kernel (inside/mpi.h). */
static u32 fix(enum kind kind, void *value)
{
    const u32 at = new_handle(kind, value);
    tables[kind].all[at].is_lent = tables[kind].all[at].is_fixed = 1;
    return at;
}

static u32 lend(enum kind kind, void *value)
{
    for (u32 at = 1; at < tables[kind].count; at++)
        if (tables[kind].all[at].native == value)
            return at;
    const u32 at = new_handle(kind, value);
    if (at != 0)
        tables[kind].all[at].is_lent = 1;
    return at;
}

/* --- datatypes: what they reach, from how they were made. MPI's own word is believed only for types
 * that were lent; for others it may widen these bounds, never narrow them. */

static struct bounds asked(MPI_Datatype type)
{
    MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
    int size = 0;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &low, &extent);
    if (size > 0) /* of an empty type, Open MPI's true extent is none */
        PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    return (struct bounds){size, low, low + extent, true_low, true_low + true_extent};
}

static struct bounds *bounds_of(const char *call, u32 at)
{
    struct handle *const handle = handle_at(call, H_DATATYPE, at);
    return handle == NULL ? NULL : &handle->bounds;
}

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}
static int64_t most(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* Distances beyond this are nobody's; below it, products of them with counts fit into 128 bits. */
static const __int128 FAR = (__int128)1 << 60;

static int64_t near(const char *call, __int128 distance)
{
    if (distance > FAR || distance < -FAR)
        jail_trap(call, "the datatype reaches farther than any memory");
    return (int64_t)distance;
}

/* Add `count` elements of a type that follow each other, at a distance. */
static void add(const char *call, struct bounds *to, const struct bounds *old, __int128 at,
                int64_t count)
{
    if (old == NULL || count <= 0)
        return;
    const __int128 all = (__int128)(count - 1) * (old->high - old->low);
    const int64_t first = near(call, at + (all < 0 ? all : 0));
    const int64_t last = near(call, at + (all > 0 ? all : 0));
    const int is_first = to->size < 0;
    const struct bounds here = {
        near(call, (__int128)old->size * count), near(call, (__int128)first + old->low),
        near(call, (__int128)last + old->high), near(call, (__int128)first + old->true_low),
        near(call, (__int128)last + old->true_high)};
    if (is_first) {
        *to = here;
        return;
    }
    to->size = near(call, (__int128)to->size + here.size);
    to->low = least(to->low, here.low), to->high = most(to->high, here.high);
    to->true_low = least(to->true_low, here.true_low);
    to->true_high = most(to->true_high, here.true_high);
}

static const struct bounds NOTHING = {-1, 0, 0, 0, 0};

static void remember(const char *call, int err, u32 newtype, struct bounds bounds)
{
    const u32 at = err == MPI_SUCCESS ? load(call, newtype) : 0;
    if (at == 0)
        return;
    if (bounds.size < 0)
        bounds.size = 0;
    const struct bounds said = asked(tables[H_DATATYPE].all[at].native);
    bounds.low = least(bounds.low, said.low), bounds.high = most(bounds.high, said.high);
    if (said.size > 0) {
        bounds.true_low = least(bounds.true_low, said.true_low);
        bounds.true_high = most(bounds.true_high, said.true_high);
        bounds.size = most(bounds.size, said.size);
    }
    tables[H_DATATYPE].all[at].bounds = bounds;
}

static int32_t int_at(const char *call, u32 array, int index)
{
    int32_t value;
    if (array == 0)
        jail_trap(call, "an argument is NULL");
    const char *const all = span(call, array, (int64_t)index + 1, sizeof value);
    memcpy(&value, all + (size_t)index * sizeof value, sizeof value);
    return value;
}

static int64_t wide_at(const char *call, u32 array, int index)
{
    int64_t value;
    if (array == 0)
        jail_trap(call, "an argument is NULL");
    const char *const all = span(call, array, (int64_t)index + 1, sizeof value);
    memcpy(&value, all + (size_t)index * sizeof value, sizeof value);
    return value;
}

static int64_t extent_of(const struct bounds *bounds)
{
    return bounds == NULL ? 0 : bounds->high - bounds->low;
}

static void bounds_of_Type_contiguous(const char *call, int err, u32 count, u32 oldtype,
                                      u32 newtype)
{
    struct bounds bounds = NOTHING;
    if (err == MPI_SUCCESS)
        add(call, &bounds, bounds_of(call, oldtype), 0, (int)count);
    remember(call, err, newtype, bounds);
}

static void strided(const char *call, int err, u32 count, u32 length, __int128 stride, u32 oldtype,
                    u32 newtype)
{
    struct bounds bounds = NOTHING;
    if (err == MPI_SUCCESS && (int)count > 0) {
        near(call, stride * (int)count);
        add(call, &bounds, bounds_of(call, oldtype), 0, (int)length);
        add(call, &bounds, bounds_of(call, oldtype), stride * ((int)count - 1), (int)length);
        if (bounds.size > 0)
            bounds.size = near(call, (__int128)bounds.size / 2 * (int)count);
    }
    remember(call, err, newtype, bounds);
}

static void bounds_of_Type_vector(const char *call, int err, u32 count, u32 length, u32 stride,
                                  u32 oldtype, u32 newtype)
{
    const int64_t extent = err == MPI_SUCCESS ? extent_of(bounds_of(call, oldtype)) : 0;
    strided(call, err, count, length, (__int128)(int)stride * extent, oldtype, newtype);
}

static void bounds_of_Type_create_hvector(const char *call, int err, u32 count, u32 length,
                                          u64 stride, u32 oldtype, u32 newtype)
{
    strided(call, err, count, length, (int64_t)stride, oldtype, newtype);
}

static void bounds_of_Type_indexed(const char *call, int err, u32 count, u32 lengths, u32 displs,
                                   u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds *const old = err == MPI_SUCCESS ? bounds_of(call, oldtype) : NULL;
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add(call, &bounds, old, (__int128)int_at(call, displs, i) * extent_of(old),
            int_at(call, lengths, i));
    remember(call, err, newtype, bounds);
}

static void bounds_of_Type_create_hindexed(const char *call, int err, u32 count, u32 lengths,
                                           u32 displs, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds *const old = err == MPI_SUCCESS ? bounds_of(call, oldtype) : NULL;
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add(call, &bounds, old, wide_at(call, displs, i), int_at(call, lengths, i));
    remember(call, err, newtype, bounds);
}

static void bounds_of_Type_create_indexed_block(const char *call, int err, u32 count, u32 length,
                                                u32 displs, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds *const old = err == MPI_SUCCESS ? bounds_of(call, oldtype) : NULL;
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add(call, &bounds, old, (__int128)int_at(call, displs, i) * extent_of(old), (int)length);
    remember(call, err, newtype, bounds);
}

static void bounds_of_Type_create_hindexed_block(const char *call, int err, u32 count, u32 length,
                                                 u32 displs, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds *const old = err == MPI_SUCCESS ? bounds_of(call, oldtype) : NULL;
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add(call, &bounds, old, wide_at(call, displs, i), (int)length);
    remember(call, err, newtype, bounds);
}

static void bounds_of_Type_create_struct(const char *call, int err, u32 count, u32 lengths,
                                         u32 displs, u32 types, u32 newtype)
{
    struct bounds bounds = NOTHING;
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add(call, &bounds, bounds_of(call, (u32)int_at(call, types, i)), wide_at(call, displs, i),
            int_at(call, lengths, i));
    remember(call, err, newtype, bounds);
}

static void bounds_of_Type_create_resized(const char *call, int err, u32 oldtype, u64 low,
                                          u64 extent, u32 newtype)
{
    struct bounds bounds = NOTHING;
    if (err == MPI_SUCCESS) {
        add(call, &bounds, bounds_of(call, oldtype), 0, 1);
        bounds.low = near(call, (int64_t)low);
        bounds.high = near(call, (__int128)(int64_t)low + (int64_t)extent);
    }
    remember(call, err, newtype, bounds);
}

static void bounds_of_Type_dup(const char *call, int err, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    if (err == MPI_SUCCESS)
        add(call, &bounds, bounds_of(call, oldtype), 0, 1);
    remember(call, err, newtype, bounds);
}

/* A part of an array, taken for all of it: its data lie somewhere within. */
static void within_array(const char *call, int err, u32 dimensions, u32 sizes, u32 oldtype,
                         u32 newtype)
{
    struct bounds bounds = NOTHING;
    __int128 all = 1;
    for (int i = 0; err == MPI_SUCCESS && i < (int)dimensions; i++)
        all = near(call, all * int_at(call, sizes, i));
    if (err == MPI_SUCCESS)
        add(call, &bounds, bounds_of(call, oldtype), 0, (int64_t)all);
    remember(call, err, newtype, bounds);
}

static void bounds_of_Type_create_subarray(const char *call, int err, u32 dimensions, u32 sizes,
                                           u32 subsizes, u32 starts, u32 order, u32 oldtype,
                                           u32 newtype)
{
    (void)subsizes, (void)starts, (void)order;
    within_array(call, err, dimensions, sizes, oldtype, newtype);
}

#ifndef MPILAB_SIMULATED
static void bounds_of_Type_create_darray(const char *call, int err, u32 size, u32 rank,
                                         u32 dimensions, u32 sizes, u32 distributions,
                                         u32 arguments, u32 grid, u32 order, u32 oldtype,
                                         u32 newtype)
{
    (void)size, (void)rank, (void)distributions, (void)arguments, (void)grid, (void)order;
    within_array(call, err, dimensions, sizes, oldtype, newtype);
}
#endif

/* --- buffers: all that MPI may touch of `count` elements of a type */

static void *typed(const char *call, u32 at, int64_t count, u32 type)
{
    const struct bounds *const one = at == JAIL_IN_PLACE ? NULL : bounds_of(call, type);
    if (at == JAIL_IN_PLACE)
        return MPI_IN_PLACE;
    if (count <= 0 || one == NULL || one->size == 0) /* nothing is touched */
        return at < NULL_ZONE || at > memory->size ? NULL : memory->data + at;
    const __int128 all = (__int128)(count - 1) * extent_of(one);
    const __int128 first = (__int128)at + one->true_low + (all < 0 ? all : 0);
    const __int128 last = (__int128)at + one->true_high + (all > 0 ? all : 0);
    if (at == 0 && first < NULL_ZONE)
        return NULL; /* MPI says MPI_ERR_BUFFER, as it does outside */
    if (first < NULL_ZONE || last > (__int128)memory->size)
        jail_trap(
            call,
            "the buffer, with this count and datatype, reaches outside of the kernel's memory");
    return memory->data + at;
}

static int size_of(const char *call, u32 comm)
{
    int size = 0;
    if (PMPI_Comm_size(native(call, H_COMM, comm), &size) != MPI_SUCCESS)
        return 0;
    return size;
}

static int is_root(u32 comm, u32 root)
{
    int rank = -1;
    PMPI_Comm_rank(native("a collective", H_COMM, comm), &rank);
    return rank == (int)root;
}

/* The address of a buffer whose blocks reach that far, one for each rank. */
static void *blocks_at(const char *call, u32 at, const struct bounds *all)
{
    if (all->size > 0 && ((__int128)at + all->true_low < NULL_ZONE ||
                          (__int128)at + all->true_high > (__int128)memory->size))
        jail_trap(call, "the buffer, with these counts and displacements, reaches outside of the "
                        "kernel's memory");
    return at > memory->size ? NULL : memory->data + at;
}

/* A block of its own count, at its own displacement, for each rank. */
static void *spread(const char *call, u32 at, u32 counts, u32 displs, u32 type, int size)
{
    if (at == JAIL_IN_PLACE)
        return MPI_IN_PLACE;
    struct bounds all = NOTHING;
    const struct bounds *const one = bounds_of(call, type);
    for (int rank = 0; rank < size; rank++)
        add(call, &all, one, (__int128)int_at(call, displs, rank) * extent_of(one),
            int_at(call, counts, rank));
    return blocks_at(call, at, &all);
}

static void *spread_by_type(const char *call, u32 at, u32 counts, u32 displs, u32 types, int size)
{
    if (at == JAIL_IN_PLACE)
        return MPI_IN_PLACE;
    struct bounds all = NOTHING;
    for (int rank = 0; rank < size; rank++)
        add(call, &all, bounds_of(call, (u32)int_at(call, types, rank)), int_at(call, displs, rank),
            int_at(call, counts, rank));
    return blocks_at(call, at, &all);
}

static int64_t sum_of(const char *call, u32 counts, int size)
{
    int64_t sum = 0;
    for (int rank = 0; rank < size; rank++)
        sum += int_at(call, counts, rank);
    return sum;
}

static int64_t own_of(const char *call, u32 counts, u32 comm)
{
    int rank = 0;
    PMPI_Comm_rank(native(call, H_COMM, comm), &rank);
    return int_at(call, counts, rank);
}

/* --- statuses: what the kernel may read, and how many bytes came */

struct inside_status {
    int32_t source, tag, error, cancelled;
    int64_t bytes;
};

static void put_status(void *to, const MPI_Status *status)
{
    struct inside_status inside = {status->MPI_SOURCE, status->MPI_TAG, status->MPI_ERROR, 0, 0};
    int bytes = 0, cancelled = 0;
    if (PMPI_Get_count(status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes > 0)
        inside.bytes = bytes;
    if (PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS)
        inside.cancelled = cancelled;
    memcpy(to, &inside, sizeof inside);
}

static void give_status(const char *call, u32 at, const MPI_Status *status)
{
    if (at != 0)
        put_status(span(call, at, 1, sizeof(struct inside_status)), status);
}

static MPI_Status *take_statuses(const char *call, u32 at, int count)
{
    if (span(call, at, count, sizeof(struct inside_status)) == NULL || count <= 0)
        return NULL;
    MPI_Status *const taken = calloc((size_t)count, sizeof *taken);
    if (taken == NULL)
        jail_trap(call, "no memory for so many statuses");
    return taken;
}

static void give_statuses(u32 at, int count, MPI_Status *taken)
{
    for (int i = 0; taken != NULL && i < count; i++)
        put_status(memory->data + at + (size_t)i * sizeof(struct inside_status), &taken[i]);
    free(taken);
}

#pragma GCC diagnostic ignored "-Wunused-parameter" /* `unused`: all instances share one process */

#include "calls.inc"

/* --- by hand: what follows no rule */

static int64_t bytes_in(const char *call, u32 status)
{
    struct inside_status inside;
    memcpy(&inside, must_span(call, status, sizeof inside), sizeof inside);
    return inside.bytes;
}

IMPORT(u32, MPI_Get_count, u32 status, u32 datatype, u32 count)
{
    int size = 0;
    const int64_t bytes = bytes_in("MPI_Get_count", status);
    const int err = PMPI_Type_size(native("MPI_Get_count", H_DATATYPE, datatype), &size);
    if (err != MPI_SUCCESS)
        return (u32)err;
    const int64_t whole = size == 0 ? 0 : bytes / size;
    const int fits = size == 0 ? bytes == 0 : bytes % size == 0 && whole <= INT32_MAX;
    store("MPI_Get_count", count, (u32)(fits ? (int)whole : MPI_UNDEFINED));
    return MPI_SUCCESS;
}

#ifndef MPILAB_SIMULATED
IMPORT(u32, MPI_Get_elements, u32 status, u32 datatype, u32 count)
{
    MPI_Status made_up;
    int elements = 0;
    memset(&made_up, 0, sizeof made_up);
    const int64_t bytes = bytes_in("MPI_Get_elements", status);
    PMPI_Status_set_elements_x(&made_up, MPI_BYTE, bytes);
    const int err =
        PMPI_Get_elements(&made_up, native("MPI_Get_elements", H_DATATYPE, datatype), &elements);
    store("MPI_Get_elements", count, (u32)elements);
    return (u32)err;
}
#endif

IMPORT(u32, MPI_Test_cancelled, u32 status, u32 flag)
{
    struct inside_status inside;
    memcpy(&inside, must_span("MPI_Test_cancelled", status, sizeof inside), sizeof inside);
    store("MPI_Test_cancelled", flag, (u32)(inside.cancelled != 0));
    return MPI_SUCCESS;
}

static void check_position(const char *call, u32 position, u32 size)
{
    if (size > INT32_MAX || load(call, position) > size)
        jail_trap(call, "the position is outside of the packed buffer");
}

IMPORT(u32, MPI_Pack, u32 in, u32 count, u32 datatype, u32 out, u32 size, u32 position, u32 comm)
{
    check_position("MPI_Pack", position, size);
    return (u32)MPI_Pack(typed("MPI_Pack", in, (int)count, datatype), (int)count,
                         native("MPI_Pack", H_DATATYPE, datatype), span("MPI_Pack", out, size, 1),
                         (int)size, span("MPI_Pack", position, 1, 4),
                         native("MPI_Pack", H_COMM, comm));
}

IMPORT(u32, MPI_Unpack, u32 in, u32 size, u32 position, u32 out, u32 count, u32 datatype, u32 comm)
{
    check_position("MPI_Unpack", position, size);
    return (u32)MPI_Unpack(
        span("MPI_Unpack", in, size, 1), (int)size, span("MPI_Unpack", position, 1, 4),
        typed("MPI_Unpack", out, (int)count, datatype), (int)count,
        native("MPI_Unpack", H_DATATYPE, datatype), native("MPI_Unpack", H_COMM, comm));
}

IMPORT(double, MPI_Wtime)
{
    return MPI_Wtime();
}
IMPORT(double, MPI_Wtick)
{
    return MPI_Wtick();
}

/* Attributes: only those of keys that the kernel has made. MPI's own are addresses outside. */
struct keyval {
    int key;
    u32 delete, extra;
};
enum { MOST_KEYS = 256 };
static struct keyval *keys[MOST_KEYS];

static struct keyval *key_of(const char *call, u32 number)
{
    if (number == 0 || number >= MOST_KEYS || keys[number] == NULL)
        jail_trap(call, "the key is none that the kernel has made");
    return keys[number];
}

static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    const struct keyval *const of = extra;
    (void)key;
    if (of->delete == 0)
        return MPI_SUCCESS;
    u32 number = 0;
    while (number < MOST_KEYS && keys[number] != of)
        number++;
    return (int)inside_delete(of->delete, lend(H_COMM, comm), number, (u32)(uintptr_t)value,
                              of->extra);
}

IMPORT(u32, MPI_Comm_create_keyval, u32 copy, u32 delete, u32 key, u32 extra)
{
    const char *const call = "MPI_Comm_create_keyval";
    u32 number = 1;
    if (copy != 0)
        jail_trap(call, "functions that copy an attribute are not offered");
    while (number < MOST_KEYS && keys[number] != NULL)
        number++;
    struct keyval *const made = number < MOST_KEYS ? malloc(sizeof *made) : NULL;
    if (made == NULL)
        jail_trap(call, "the kernel has made more keys than it may have");
    *made = (struct keyval){MPI_KEYVAL_INVALID, delete, extra};
    const int err = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &made->key, made);
    if (err == MPI_SUCCESS)
        keys[number] = made;
    store(call, key, err == MPI_SUCCESS ? number : 0);
    return (u32)err;
}

/* The key goes, but not what its attributes need, which may outlive it. */
IMPORT(u32, MPI_Comm_free_keyval, u32 key)
{
    const char *const call = "MPI_Comm_free_keyval";
    int freed = key_of(call, load(call, key))->key;
    const int err = MPI_Comm_free_keyval(&freed);
    store(call, key, 0);
    return (u32)err;
}

IMPORT(u32, MPI_Comm_delete_attr, u32 comm, u32 key)
{
    const char *const call = "MPI_Comm_delete_attr";
    return (u32)MPI_Comm_delete_attr(native(call, H_COMM, comm), key_of(call, key)->key);
}

IMPORT(u32, MPI_Comm_get_attr, u32 comm, u32 key, u32 value, u32 flag)
{
    const char *const call = "MPI_Comm_get_attr";
    void *found = NULL;
    int is_there = 0;
    const int err =
        MPI_Comm_get_attr(native(call, H_COMM, comm), key_of(call, key)->key, &found, &is_there);
    store(call, flag, (u32)is_there);
    if (is_there)
        store(call, value, (u32)(uintptr_t)found);
    return (u32)err;
}

IMPORT(u32, MPI_Comm_set_attr, u32 comm, u32 key, u32 value)
{
    const char *const call = "MPI_Comm_set_attr";
    return (u32)MPI_Comm_set_attr(native(call, H_COMM, comm), key_of(call, key)->key,
                                  (void *)(uintptr_t)value);
}

/* MPI does not say which operation it calls: a few, told apart by functions of their own. Data that
 * MPI holds outside are copied in and out. */
enum { MOST_OPERATIONS = 8 };
static u32 combining[MOST_OPERATIONS];

static void combine(int which, void *in, void *inout, int count, MPI_Datatype type)
{
    const struct bounds one = asked(type);
    const __int128 all = (__int128)(count - 1) * extent_of(&one);
    const int64_t first = near("MPI_Op", one.true_low + (all < 0 ? all : 0));
    const int64_t last = near("MPI_Op", one.true_high + (all > 0 ? all : 0));
    if (count <= 0 || last <= first)
        return;
    const size_t bytes = (size_t)(last - first);
    char *const copies = mpilab_jail_allocate(2 * bytes);
    if (copies == NULL)
        jail_trap("MPI_Op", "no memory for the operation's data");
    memcpy(copies, (char *)in + first, bytes);
    memcpy(copies + bytes, (char *)inout + first, bytes);
    inside_combine(combining[which], (u32)(jail_address(copies) - (u32)first),
                   (u32)(jail_address(copies + bytes) - (u32)first), (u32)count,
                   lend(H_DATATYPE, type));
    memcpy((char *)inout + first, copies + bytes, bytes);
    mpilab_jail_free(copies);
}

#define COMBINE(n)                                                                 \
    static void combine_##n(void *in, void *inout, int *count, MPI_Datatype *type) \
    {                                                                              \
        combine(n, in, inout, *count, *type);                                      \
    }
COMBINE(0)
COMBINE(1)
COMBINE(2)
COMBINE(3)
COMBINE(4)
COMBINE(5)
COMBINE(6)
COMBINE(7)

IMPORT(u32, MPI_Op_create, u32 function, u32 commute, u32 op)
{
    static MPI_User_function *const all[MOST_OPERATIONS] = {
        combine_0, combine_1, combine_2, combine_3, combine_4, combine_5, combine_6, combine_7};
    static int made_before;
    MPI_Op n_op = MPI_OP_NULL;
    need_kernel("MPI_Op_create");
    if (made_before == MOST_OPERATIONS)
        jail_trap("MPI_Op_create", "more operations than a kernel may make");
    combining[made_before] = function;
    const int err = MPI_Op_create(all[made_before++], (int)commute, &n_op);
    made("MPI_Op_create", H_OP, op, n_op);
    return (u32)err;
}

IMPORT(u32, MPI_Error_string, u32 code, u32 text, u32 length)
{
    const char *const call = "MPI_Error_string";
    return (u32)MPI_Error_string((int)code, must_span(call, text, MPI_MAX_ERROR_STRING),
                                 must_span(call, length, 4));
}

IMPORT(u32, MPI_Get_processor_name, u32 name, u32 length)
{
    const char *const call = "MPI_Get_processor_name";
    return (u32)MPI_Get_processor_name(must_span(call, name, MPI_MAX_PROCESSOR_NAME),
                                       must_span(call, length, 4));
}

IMPORT(u32, MPI_Abort, u32 comm, u32 code)
{
    return (u32)MPI_Abort(native("MPI_Abort", H_COMM, comm), (int)code);
}

#ifndef MPILAB_SIMULATED
/* A text that ends within the memory. */
static const char *text_at(const char *call, u32 at)
{
    const char *const text = must_span(call, at, 1);
    if (memchr(text, 0, (size_t)((char *)memory->data + memory->size - text)) == NULL)
        jail_trap(call, "a text has no end in the kernel's memory");
    return text;
}

/* Buffers for MPI_Bsend. They stay where they are: the memory never moves. */
IMPORT(u32, MPI_Buffer_attach, u32 buffer, u32 bytes)
{
    const char *const call = "MPI_Buffer_attach";
    return (u32)MPI_Buffer_attach(span(call, buffer, (int)bytes, 1), (int)bytes);
}

IMPORT(u32, MPI_Buffer_detach, u32 address, u32 bytes)
{
    const char *const call = "MPI_Buffer_detach";
    void *detached = NULL;
    int size = 0;
    const int err = MPI_Buffer_detach(&detached, &size);
    store(call, address, detached == NULL ? 0 : jail_address(detached));
    store(call, bytes, (u32)size);
    return (u32)err;
}

IMPORT(u32, MPI_Info_set, u32 info, u32 key, u32 value)
{
    const char *const call = "MPI_Info_set";
    return (u32)MPI_Info_set(native(call, H_INFO, info), text_at(call, key), text_at(call, value));
}

IMPORT(u32, MPI_Info_get, u32 info, u32 key, u32 most_bytes, u32 value, u32 flag)
{
    const char *const call = "MPI_Info_get";
    const int bytes = (int)most_bytes;
    char *const to = bytes < 0 ? NULL : must_span(call, value, (int64_t)bytes + 1);
    return (u32)MPI_Info_get(native(call, H_INFO, info), text_at(call, key), bytes, to,
                             must_span(call, flag, 4));
}

IMPORT(u32, MPI_File_set_view, u32 file, u64 offset, u32 etype, u32 filetype, u32 representation,
       u32 info)
{
    const char *const call = "MPI_File_set_view";
    return (u32)MPI_File_set_view(native(call, H_FILE, file), (MPI_Offset)offset,
                                  native(call, H_DATATYPE, etype),
                                  native(call, H_DATATYPE, filetype), text_at(call, representation),
                                  native(call, H_INFO, info));
}

IMPORT(u32, MPI_File_get_view, u32 file, u32 offset, u32 etype, u32 filetype, u32 representation)
{
    const char *const call = "MPI_File_get_view";
    MPI_Datatype n_etype = MPI_DATATYPE_NULL, n_filetype = MPI_DATATYPE_NULL;
    const int err =
        MPI_File_get_view(native(call, H_FILE, file), must_span(call, offset, 8), &n_etype,
                          &n_filetype, must_span(call, representation, MPI_MAX_DATAREP_STRING));
    store(call, etype, lend(H_DATATYPE, n_etype));
    store(call, filetype, lend(H_DATATYPE, n_filetype));
    return (u32)err;
}
#endif

IMPORT(void, mpilab_place, u32 place)
{
    memcpy(must_span("mpilab_place", place, sizeof(struct mpilab_place)), mpilab_place(),
           sizeof(struct mpilab_place));
}

/* --- of WASI, no more than printing needs */

WASI(fd_write, u32 descriptor, u32 pieces, u32 count, u32 written)
{
    u32 all = 0;
    if (descriptor != 1 && descriptor != 2)
        return 8; /* EBADF */
    for (u32 i = 0; i < count; i++) {
        const u32 at = (u32)int_at("printf", pieces, (int)(2 * i));
        const u32 bytes = (u32)int_at("printf", pieces, (int)(2 * i + 1));
        if (bytes > 0)
            fwrite(must_span("printf", at, bytes), 1, bytes, descriptor == 1 ? stdout : stderr);
        all += bytes;
    }
    fflush(descriptor == 1 ? stdout : stderr);
    store("printf", written, all);
    return 0;
}

WASI(fd_close, u32 descriptor)
{
    return 0;
}

WASI(fd_seek, u32 descriptor, u64 offset, u32 whence, u32 at)
{
    return 29; /* ESPIPE */
}

WASI(fd_fdstat_get, u32 descriptor, u32 at)
{
    char *const state = must_span("printf", at, 24);
    memset(state, 0, 24);
    state[0] = 2; /* a terminal, so that lines are written at once */
    return 0;
}

/* --- a call of the kernel */

static void fix_datatype(MPI_Datatype type)
{
    const u32 at = fix(H_DATATYPE, type);
    tables[H_DATATYPE].all[at].bounds = asked(type);
}

void jail_begin(void)
{
    fix(H_COMM, MPI_COMM_WORLD), fix(H_COMM, MPI_COMM_SELF);
    fix(H_GROUP, MPI_GROUP_EMPTY);
    fix(H_OP, MPI_SUM), fix(H_OP, MPI_MAX), fix(H_OP, MPI_MIN), fix(H_OP, MPI_PROD);
    fix(H_OP, MPI_LAND), fix(H_OP, MPI_LOR), fix(H_OP, MPI_BAND), fix(H_OP, MPI_BOR);
    fix(H_OP, MPI_BXOR);
#define MPILAB_TYPE(name, outside) fix_datatype(outside);
#include "inside/types.inc"
#undef MPILAB_TYPE
}

void jail_enter(void)
{
    call_of++;
    runs = 1;
}

/* What was lent is gone; what the kernel has made stays its own. */
void jail_leave(void)
{
    runs = 0;
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (u32 at = 1; at < tables[kind].count; at++)
            if (tables[kind].all[at].native != NULL && tables[kind].all[at].is_lent &&
                !tables[kind].all[at].is_fixed)
                drop(kind, at);
}

u32 jail_comm(MPI_Comm comm)
{
    return lend(H_COMM, comm);
}
u32 jail_op(MPI_Op op)
{
    return lend(H_OP, op);
}
u32 jail_file(MPI_File file)
{
    return lend(H_FILE, file);
}

u32 jail_datatype(MPI_Datatype type)
{
    const u32 at = lend(H_DATATYPE, type);
    if (at != 0 && !tables[H_DATATYPE].all[at].is_fixed)
        tables[H_DATATYPE].all[at].bounds = asked(type);
    return at;
}

u32 jail_numbers(const int *outside, int count)
{
    if (outside == NULL)
        return 0;
    /* One page or more a call, given back when it ends (trampoline.c). */
    int *const copy = mpilab_jail_allocate((size_t)count * sizeof *copy);
    if (copy == NULL)
        jail_trap("the harness", "no memory for the counts of the call");
    memcpy(copy, outside, (size_t)count * sizeof *copy);
    return jail_address(copy);
}
