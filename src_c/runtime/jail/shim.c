/* What a kernel in the jail can call, and the tables that it cannot reach.
 *
 * MPI_* are the recorder's wrappers. PMPI_* calls bypass them, and serve the shim's own queries.
 */
#include "../recorder/recorder.h"
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
    MOST_ARENAS = 16384, /* and as much for the harness's buffers */
    MOST_HANDLES = 1 << 20
};
#define memory jail_memory
/* Which of the kernel's code runs: none; the kernel itself; or a function that MPI calls, for an
 * attribute (to copy or to delete it) or to combine elements. */
static enum { NONE, KERNEL, ATTRIBUTE, COMBINING } running;
static unsigned call_of; /* how many calls of a kernel have begun */

_Noreturn void jail_trap(const char *where, const char *why)
{
    if (!recorder_note_trap(where, why)) {
        int rank = -1;
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        char text[300];
        const int bytes = snprintf(text, sizeof text, "jail: rank %d: %s: %s\n", rank, where, why);
        if (write(2, text, (size_t)bytes) < 0)
            raise(SIGABRT);
    }
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    abort();
}

#ifdef MPILAB_SIMULATED
/* As SMPI reports a call that it does not have (mpilab/runners/simgrid.py reads it). */
static _Noreturn void jail_not_simulated(const char *call)
{
    char text[100];
    const int bytes =
        snprintf(text, sizeof text, "[jail/CRITICAL] Not yet implemented: %s\n", call);
    if (write(2, text, (size_t)bytes) < 0)
        raise(SIGSEGV);
    abort();
}
#endif

/* The purposes of calls: any; freeing what a kernel has made; queries. */
enum purpose { CALLS, FREES, QUERIES };

/* When a collective fails because the ranks' calls do not match, Open MPI frees its own buffers while
 * receives into them are pending: no later message may arrive there. Errors in arguments are found
 * before. */
static const char UNSETTLED[] = "it failed while messages were under way: the ranks' calls differ";

static void settled(const char *call, int err)
{
    int class = MPI_SUCCESS;
    if (err == MPI_SUCCESS)
        return;
    PMPI_Error_class(err, &class);
    if (class == MPI_ERR_TRUNCATE || class == MPI_ERR_INTERN || class == MPI_ERR_OTHER ||
        class == MPI_ERR_UNKNOWN)
        jail_trap(call, UNSETTLED);
}

static void need(const char *call, enum purpose purpose)
{
    if (running == NONE)
        jail_trap(call, "called while no kernel ran");
    if (running == ATTRIBUTE && purpose == CALLS)
        jail_trap(call, "called by a function that copies or deletes an attribute");
    if (running == COMBINING && purpose != QUERIES)
        jail_trap(call, "called by an operation that combines elements");
}

/* --- memory */

void *span(const char *call, u32 at, int64_t count, int64_t bytes)
{
    if (at == 0 || count < 0)
        return NULL;
    const __int128 end = (__int128)at + (__int128)count * bytes;
    if (at < NULL_ZONE || end > (__int128)memory->size)
        jail_trap(call, "an argument points outside the kernel's memory");
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

static u64 load_wide(const char *call, u32 at)
{
    u64 value;
    memcpy(&value, must_span(call, at, sizeof value), sizeof value);
    return value;
}

static void store_wide(const char *call, u32 at, u64 value)
{
    memcpy(must_span(call, at, sizeof value), &value, sizeof value);
}

static void *allocate(const char *call, size_t bytes)
{
    void *const got = malloc(bytes == 0 ? 1 : bytes);
    if (got == NULL)
        jail_trap(call, "no memory for an array of the call");
    return got;
}

/* A copy of an array, which the caller frees. MPI gets only copies: a message that arrives in the
 * kernel's memory could change the array while MPI reads it. */
static void *copy(const char *call, u32 at, int64_t count, int64_t bytes)
{
    if (count < 0)
        jail_trap(call, "a count is negative");
    if (count > 0 && at == 0)
        jail_trap(call, "an argument is NULL");
    const void *const from = span(call, at, count, bytes);
    void *const to = allocate(call, (size_t)(count * bytes));
    if (count > 0)
        memcpy(to, from, (size_t)(count * bytes));
    return to;
}

/* The reverse. */
static void put(const char *call, u32 at, int64_t count, int64_t bytes, const void *from)
{
    if (count > 0)
        memcpy(span(call, at, count, bytes), from, (size_t)(count * bytes));
}

/* Memory for the harness's buffers: whole pages, which the kernel's own malloc never returns. They
 * are freed by the page and reused. */
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

/* One element of a datatype, in bytes from its address: how far its bounds reach (low to high is
 * the extent), and its data. */
struct bounds {
    int64_t size, low, high, true_low, true_high;
    int64_t least_step, most_step; /* from one element to the next: by us, and by MPI */
    int is_ordered;                /* no byte is in it twice, or before an earlier one */
    int is_shifted;                /* a part of it has a lower bound of its own */
    int is_packed;                 /* it is MPI_PACKED, or a copy of it */
    /* Where it is not the first element, MPI may access so much more, before and behind. */
    int64_t again_before, again_behind;
};

struct handle {
    void *native;      /* NULL: the entry is free */
    int is_lent;       /* for this call, or forever (what MPI has made): not to be freed */
    int is_fixed;      /* forever */
    int is_persistent; /* of a request: one that can be started */
    int is_committed;  /* of a datatype */
    int is_empty;      /* of a datatype: MPI finds no data in it */
    int split;         /* of a file: which split read is in progress, or 0 */
    int is_broken;     /* of a file: no view could be set, so MPI has none */
    int in_use;        /* number of requests, or running callbacks, that use it: not to be freed */
    unsigned made;     /* by which call of the kernel */
    unsigned taken;    /* by which array of requests: none may have it twice */
    int slot;          /* of an operation: which function combines, from 1 */
    struct {
        enum kind kind;
        u32 at;           /* 0: none */
    } holds;              /* of a request: what it uses until it is complete */
    struct bounds bounds; /* of a datatype */
};
static struct table {
    struct handle *all; /* from 1 on: 0 is the null handle */
    u32 count, *free_places, frees;
} tables[KINDS];
static int held; /* requests that hold something, and split reads in progress */

static void *null_of(enum kind kind)
{
    void *const nulls[KINDS] = {[H_COMM] = MPI_COMM_NULL,       [H_DATATYPE] = MPI_DATATYPE_NULL,
                                [H_FILE] = MPI_FILE_NULL,       [H_GROUP] = MPI_GROUP_NULL,
                                [H_INFO] = MPI_INFO_NULL,       [H_OP] = MPI_OP_NULL,
                                [H_MESSAGE] = MPI_MESSAGE_NULL, [H_REQUEST] = MPI_REQUEST_NULL};
    return nulls[kind];
}

static struct handle *handle_at(const char *call, enum kind kind, u32 at)
{
    struct table *const table = &tables[kind];
    if (at == 0)
        return NULL;
    if (at >= table->count || table->all[at].native == NULL) {
        char why[100];
        snprintf(why, sizeof why, "an argument is not a valid %s, or was freed", what_it_is[kind]);
        jail_trap(call, why);
    }
    if (kind == H_REQUEST && table->all[at].made != call_of)
        jail_trap(call, "the request is one of an earlier call of the kernel");
    if (kind == H_MESSAGE && table->all[at].made != call_of && !table->all[at].is_fixed)
        jail_trap(call, "the message is one of an earlier call of the kernel");
    if (kind == H_FILE && table->all[at].is_broken)
        jail_trap(call, "the file has no view, because MPI rejected the last one");
    return &table->all[at];
}

/* MPI allows the null handle as an argument only for requests and info objects. */
static void *native(const char *call, enum kind kind, u32 at)
{
    struct handle *const handle = handle_at(call, kind, at);
    if (handle == NULL && kind != H_REQUEST && kind != H_INFO) {
        char why[100];
        snprintf(why, sizeof why, "the %s is the null handle", what_it_is[kind]);
        jail_trap(call, why);
    }
    return handle == NULL ? null_of(kind) : handle->native;
}

/* The same for a datatype that describes data. Not every call of MPI checks that it is committed.
 * One without data is replaced, together with its count: Open MPI divides by its size, and a receive
 * of nothing as such a type is not prepared for a message that has data. */
static void *committed(const char *call, u32 at)
{
    void *const type = native(call, H_DATATYPE, at);
    if (!tables[H_DATATYPE].all[at].is_committed)
        jail_trap(call, "the datatype is not committed");
    return tables[H_DATATYPE].all[at].is_empty ? (void *)MPI_BYTE : type;
}

static int with_data(const char *call, u32 type, int count)
{
    const struct handle *const handle = handle_at(call, H_DATATYPE, type);
    return handle != NULL && handle->is_empty && count > 0 ? 0 : count;
}

static void all_with_data(const char *call, u32 type, int *counts, int size)
{
    for (int i = 0; i < size; i++)
        counts[i] = with_data(call, type, counts[i]);
}

/* The same for a handle that the call frees. */
static void *release(const char *call, enum kind kind, u32 at)
{
    struct handle *const handle = handle_at(call, kind, at);
    if (handle != NULL && handle->is_lent)
        jail_trap(call, "it would free what the kernel has not made");
    if (handle != NULL && handle->in_use > 0)
        jail_trap(call, "it would free what is still in use");
    return native(call, kind, at);
}

static u32 new_handle(enum kind kind, void *value)
{
    struct table *const table = &tables[kind];
    u32 at;
    if (value == null_of(kind))
        return 0;
    /* Whoever probes for a message from MPI_PROC_NULL may compare. */
    if (kind == H_MESSAGE && value == MPI_MESSAGE_NO_PROC && table->count > 0)
        return 1;
    if (table->frees > 0) {
        at = table->free_places[--table->frees];
    } else {
        const u32 count = table->count == 0 ? 1 : table->count;
        if (count == MOST_HANDLES)
            jail_trap("MPI", "the kernel has made more handles than it may have");
        /* Doubles in size, so it seldom grows. */
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
    struct handle *const handle = &tables[kind].all[at];
    if (handle->holds.at != 0)
        tables[handle->holds.kind].all[handle->holds.at].in_use--, held -= kind == H_REQUEST;
    handle->native = NULL;
    tables[kind].free_places[tables[kind].frees++] = at;
}

/* A handle's number after a call that may have freed or replaced it. */
static u32 changed(enum kind kind, u32 at, void *now)
{
    if (at == 0 || tables[kind].all[at].is_fixed)
        return new_handle(kind, now);
    if (now == null_of(kind)) {
        drop(kind, at);
        return 0;
    }
    tables[kind].all[at].native = now;
    return at;
}

/* An array of handles, and their numbers as they were read; the caller frees both. No request may
 * be in it twice: MPI would complete and free it twice. */
struct taken {
    int count;
    u32 *numbers;
    void *natives;
};

static struct taken take(const char *call, enum kind kind, u32 address, int count)
{
    static unsigned arrays;
    struct taken taken = {count, copy(call, address, count, sizeof(u32)), NULL};
    void **const natives = allocate(call, (size_t)count * sizeof *natives);
    taken.natives = natives;
    arrays++;
    for (int i = 0; i < count; i++) {
        struct handle *const handle = handle_at(call, kind, taken.numbers[i]);
        natives[i] = native(call, kind, taken.numbers[i]);
        if (handle == NULL || kind != H_REQUEST)
            continue;
        if (handle->taken == arrays)
            jail_trap(call, "the same request is in the array twice");
        handle->taken = arrays;
    }
    return taken;
}

static void give(const char *call, enum kind kind, u32 address, const struct taken *given,
                 int has_changed)
{
    void *const *const natives = given->natives;
    if (!has_changed)
        return;
    for (int i = 0; i < given->count; i++)
        given->numbers[i] = changed(kind, given->numbers[i], natives[i]);
    put(call, address, given->count, sizeof(u32), given->numbers);
}

/* A request uses a communicator or a file until it is complete, and so does a message until it is
 * received: MPI does not keep it alive. */
static void hold(const char *call, int err, enum kind by, u32 number, enum kind kind, u32 at)
{
    if (err != MPI_SUCCESS || number == 0 || at == 0)
        return;
    struct handle *const holder = handle_at(call, by, number);
    if (holder->is_fixed)
        return;
    holder->holds.kind = kind, holder->holds.at = at;
    tables[kind].all[at].in_use++, held += by == H_REQUEST;
}

static void not_held(const char *call, u32 request)
{
    const struct handle *const handle = handle_at(call, H_REQUEST, request);
    if (handle != NULL && handle->holds.at != 0)
        jail_trap(call, "MPI does not allow this for a request of a collective or of a file");
}

/* If a request fails, Open MPI 5.0.11 looks for the error handler of a request of a file, perhaps of
 * another one of the array, where there is none. */
static void begin_wait(int count, const u32 *requests)
{
    for (int i = 0; i < count; i++)
        if (requests[i] != 0 && tables[H_REQUEST].all[requests[i]].holds.kind == H_FILE &&
            tables[H_REQUEST].all[requests[i]].holds.at != 0)
            jail_fault_at_null = "a request failed, and one of a file was waited for with it";
}

/* SMPI 3.32 frees what was canceled, and finds it again: when it looks for a match, or in an array of
 * requests. It looks for a matched message among those that wait for one. */
static void can_cancel(u32 request)
{
#ifdef MPILAB_SIMULATED
    if (request != 0)
        jail_not_simulated("MPI_Cancel");
#else
    (void)request;
#endif
}

static void end_wait(void)
{
    jail_fault_at_null = NULL;
}

static void persist(int err, u32 number)
{
    if (err == MPI_SUCCESS && number != 0)
        tables[H_REQUEST].all[number].is_persistent = 1;
}

static void must_start(const char *call, u32 request)
{
    const struct handle *const handle = handle_at(call, H_REQUEST, request);
    if (handle == NULL || !handle->is_persistent)
        jail_trap(call, "it would start a request that is not persistent");
}

static void must_start_all(const char *call, const struct taken *requests)
{
    for (int i = 0; i < requests->count; i++)
        must_start(call, requests->numbers[i]);
}

/* MPI's predefined objects: the same numbers in every kernel (inside/mpi.h). */
static u32 fix(enum kind kind, void *value)
{
    const u32 at = new_handle(kind, value);
    tables[kind].all[at].is_lent = tables[kind].all[at].is_fixed = 1;
    tables[kind].all[at].is_committed = 1;
    return at;
}

static struct bounds asked(MPI_Datatype type);

static u32 find(enum kind kind, const void *value)
{
    for (u32 at = 1; at < tables[kind].count; at++)
        if (tables[kind].all[at].native == value)
            return at;
    return 0;
}

static u32 lend(enum kind kind, void *value)
{
    const u32 known = find(kind, value);
    const u32 at = known == 0 ? new_handle(kind, value) : known;
    if (at == 0 || known != 0)
        return at;
    tables[kind].all[at].is_lent = tables[kind].all[at].is_committed = 1;
    if (kind == H_DATATYPE)
        tables[kind].all[at].bounds = asked(value);
    return at;
}

/* --- datatypes: their bounds, derived from how they were made. MPI's own values are trusted only
 * for types that were lent; for others they may widen these bounds, never narrow them. */

/* No memory reaches this far; products of smaller distances with counts fit into 128 bits. */
#define FAR ((__int128)1 << 60)

static struct bounds asked(MPI_Datatype type)
{
    MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
    int size = 0;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &low, &extent);
    /* MPI's sum, too, may have overflowed. */
    const MPI_Aint high = (MPI_Aint)((uint64_t)low + (uint64_t)extent);
    if (size == MPI_UNDEFINED || size < 0) /* more than an int can hold: out of reach */
        return (struct bounds){
            (int64_t)FAR, low, high, 0, (int64_t)FAR, extent, extent, 0, 1, 0, 0, 0};
    if (size > 0) /* for an empty type, Open MPI has no true extent */
        PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    return (struct bounds){size,
                           low,
                           high,
                           true_low,
                           (int64_t)((uint64_t)true_low + (uint64_t)true_extent),
                           extent,
                           extent,
                           size == true_extent && extent >= true_extent,
                           low != 0,
                           type == MPI_PACKED,
                           0,
                           0};
}

static const struct bounds NOTHING = {.size = -1, .is_ordered = 1};

/* For the null handle: nothing, because MPI rejects it. */
static struct bounds bounds_of(const char *call, u32 at)
{
    const struct handle *const handle = handle_at(call, H_DATATYPE, at);
    return handle == NULL ? NOTHING : handle->bounds;
}

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}
static int64_t most(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static int64_t near(const char *call, __int128 distance)
{
    if (distance > FAR || distance < -FAR)
        jail_trap(call, "the datatype reaches farther than any memory");
    return (int64_t)distance;
}

/* Add `count` items at distance `at`, each `least_step` to `most_step` from the one before. */
static void repeat(const char *call, struct bounds *to, const struct bounds *old, __int128 at,
                   __int128 least_step, __int128 most_step, int64_t count)
{
    if (old->size < 0 || count <= 0)
        return;
    const int64_t before = near(call, (__int128)(count - 1) * near(call, least_step));
    const int64_t behind = near(call, (__int128)(count - 1) * near(call, most_step));
    const int64_t first = near(call, at + least(before, 0));
    const int64_t last = near(call, at + most(behind, 0));
    const int64_t more_before = count > 1 ? old->again_before : 0;
    const int64_t more_behind = count > 1 ? old->again_behind : 0;
    const struct bounds here = {
        .size = near(call, (__int128)old->size * count),
        .low = near(call, (__int128)first + old->low),
        .high = near(call, (__int128)last + old->high),
        .true_low = near(call, (__int128)first + old->true_low - more_before),
        .true_high = near(call, (__int128)last + old->true_high + more_behind),
        .is_ordered =
            old->is_ordered && (count == 1 || least_step >= old->true_high - old->true_low),
        .is_shifted = old->is_shifted};
    if (to->size < 0) {
        *to = here;
        return;
    }
    if (here.size > 0 && to->size > 0)
        to->is_ordered = to->is_ordered && here.is_ordered && here.true_low >= to->true_high;
    to->is_shifted |= here.is_shifted;
    to->size = near(call, (__int128)to->size + here.size);
    to->low = least(to->low, here.low), to->high = most(to->high, here.high);
    if (here.size == 0)
        return;
    to->true_low = to->size == here.size ? here.true_low : least(to->true_low, here.true_low);
    to->true_high = to->size == here.size ? here.true_high : most(to->true_high, here.true_high);
}

/* Add `count` consecutive elements of a type. */
static void add(const char *call, struct bounds *to, const struct bounds *old, __int128 at,
                int64_t count)
{
    repeat(call, to, old, at, old->least_step, old->most_step, count);
}

/* The same, with the distance in elements. */
static void add_after(const char *call, struct bounds *to, const struct bounds *old,
                      int64_t elements, int64_t count)
{
    const int64_t one = near(call, (__int128)elements * old->least_step);
    const int64_t other = near(call, (__int128)elements * old->most_step);
    add(call, to, old, one, count);
    if (other == one || to->size <= 0)
        return;
    const int64_t size = to->size;
    add(call, to, old, other, count);
    to->size = size, to->is_ordered = 0;
}

/* The blocks of a type that SMPI's own steps depend on: the first one, and the last. */
struct ends {
    const struct bounds *first, *last; /* the types of their elements; NULL: there is no block */
    int64_t first_length, last_length;
    __int128 last_at_least, last_at_most; /* where the last one begins */
};
static const struct ends NO_ENDS;

/* From one element to the next, SMPI goes from the beginning to the end of the last block, even if
 * that is empty; and there it looks for the first block, wherever that is in the type
 * (Type_Hindexed::serialize and similar functions of SimGrid 3.32). */
static void step_from_end(const char *call, struct bounds *bounds, const struct ends *ends)
{
#ifdef MPILAB_SIMULATED
    struct bounds first = NOTHING;
    if (ends->first == NULL)
        return;
    const int64_t length = ends->last_length < 0 ? 0 : ends->last_length;
    const int64_t one = near(call, (__int128)length * ends->last->least_step);
    const int64_t other = near(call, (__int128)length * ends->last->most_step);
    const int64_t least_step = near(call, ends->last_at_least + least(one, other));
    const int64_t most_step = near(call, ends->last_at_most + most(one, other));
    bounds->least_step = least(bounds->least_step, least_step);
    bounds->most_step = most(bounds->most_step, most_step);
    add(call, &first, ends->first, 0, ends->first_length);
    if (first.size > 0) {
        bounds->again_before = most(0, bounds->true_low - first.true_low);
        bounds->again_behind = most(0, first.true_high - bounds->true_high);
    }
#else
    (void)call, (void)bounds, (void)ends;
#endif
}

static void remember(const char *call, int err, u32 at, struct bounds bounds,
                     const struct ends *ends)
{
    if (err != MPI_SUCCESS || at == 0)
        return;
    if (bounds.size < 0)
        bounds.size = 0;
    const struct bounds said = asked(handle_at(call, H_DATATYPE, at)->native);
    handle_at(call, H_DATATYPE, at)->is_empty = said.size == 0;
    const int64_t extent = bounds.high - bounds.low;
    bounds.least_step = least(extent, said.least_step);
    bounds.most_step = most(extent, said.most_step);
    bounds.low = least(bounds.low, said.low), bounds.high = most(bounds.high, said.high);
    if (said.size > 0 && said.size < FAR) {
        bounds.true_low = least(bounds.true_low, said.true_low);
        bounds.true_high = most(bounds.true_high, said.true_high);
        bounds.size = most(bounds.size, said.size);
    }
    step_from_end(call, &bounds, ends);
    handle_at(call, H_DATATYPE, at)->bounds = bounds;
}

static int64_t extent_of(const struct bounds *bounds)
{
    return bounds->high - bounds->low;
}

static void bounds_of_Type_contiguous(const char *call, int err, u32 count, u32 oldtype,
                                      u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds old = bounds_of(call, oldtype);
    if (err == MPI_SUCCESS)
        add(call, &bounds, &old, 0, (int)count);
    remember(call, err, newtype, bounds, &NO_ENDS);
}

/* Blocks of `length` elements, at strides. */
static void strided(const char *call, int err, u32 count, u32 length, __int128 least_stride,
                    __int128 most_stride, const struct bounds *old, u32 newtype)
{
    struct bounds block = NOTHING, bounds = NOTHING;
    if (err == MPI_SUCCESS) {
        add(call, &block, old, 0, (int)length);
        repeat(call, &bounds, &block, 0, least_stride, most_stride, (int)count);
    }
    const struct ends ends = {old,
                              old,
                              (int)length,
                              (int)length,
                              ((__int128)(int)count - 1) * least_stride,
                              ((__int128)(int)count - 1) * most_stride};
    remember(call, err, newtype, bounds, (int)count > 0 ? &ends : &NO_ENDS);
}

static void bounds_of_Type_vector(const char *call, int err, u32 count, u32 length, u32 stride,
                                  u32 oldtype, u32 newtype)
{
    const struct bounds old = bounds_of(call, oldtype);
    const __int128 one = (__int128)(int)stride * old.least_step;
    const __int128 other = (__int128)(int)stride * old.most_step;
    strided(call, err, count, length, one < other ? one : other, one < other ? other : one, &old,
            newtype);
}

static void bounds_of_Type_create_hvector(const char *call, int err, u32 count, u32 length,
                                          u64 stride, u32 oldtype, u32 newtype)
{
    const struct bounds old = bounds_of(call, oldtype);
    strided(call, err, count, length, (int64_t)stride, (int64_t)stride, &old, newtype);
}

/* The blocks of a type with displacements in elements, or in bytes; `lengths` is NULL if they are all
 * of the same length. */
static struct ends elements_of(const struct bounds *old, int count, const int *lengths, int length,
                               const int *displs)
{
    if (count < 1)
        return NO_ENDS;
    const __int128 one = (__int128)displs[count - 1] * old->least_step;
    const __int128 other = (__int128)displs[count - 1] * old->most_step;
    return (struct ends){old,
                         old,
                         lengths == NULL ? length : lengths[0],
                         lengths == NULL ? length : lengths[count - 1],
                         one < other ? one : other,
                         one < other ? other : one};
}

static struct ends bytes_of(const struct bounds *old, int count, const int *lengths, int length,
                            const MPI_Aint *displs)
{
    if (count < 1)
        return NO_ENDS;
    return (struct ends){old,
                         old,
                         lengths == NULL ? length : lengths[0],
                         lengths == NULL ? length : lengths[count - 1],
                         displs[count - 1],
                         displs[count - 1]};
}

static void bounds_of_Type_indexed(const char *call, int err, u32 count, const int *lengths,
                                   const int *displs, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds old = bounds_of(call, oldtype);
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add_after(call, &bounds, &old, displs[i], lengths[i]);
    const struct ends ends = elements_of(&old, (int)count, lengths, 0, displs);
    remember(call, err, newtype, bounds, &ends);
}

static void bounds_of_Type_create_hindexed(const char *call, int err, u32 count, const int *lengths,
                                           const MPI_Aint *displs, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds old = bounds_of(call, oldtype);
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add(call, &bounds, &old, displs[i], lengths[i]);
    const struct ends ends = bytes_of(&old, (int)count, lengths, 0, displs);
    remember(call, err, newtype, bounds, &ends);
}

static void bounds_of_Type_create_indexed_block(const char *call, int err, u32 count, u32 length,
                                                const int *displs, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds old = bounds_of(call, oldtype);
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add_after(call, &bounds, &old, displs[i], (int)length);
    const struct ends ends = elements_of(&old, (int)count, NULL, (int)length, displs);
    remember(call, err, newtype, bounds, &ends);
}

static void bounds_of_Type_create_hindexed_block(const char *call, int err, u32 count, u32 length,
                                                 const MPI_Aint *displs, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds old = bounds_of(call, oldtype);
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++)
        add(call, &bounds, &old, displs[i], (int)length);
    const struct ends ends = bytes_of(&old, (int)count, NULL, (int)length, displs);
    remember(call, err, newtype, bounds, &ends);
}

static void bounds_of_Type_create_struct(const char *call, int err, u32 count, const int *lengths,
                                         const MPI_Aint *displs, const struct taken *types,
                                         u32 newtype)
{
    struct bounds bounds = NOTHING;
    for (int i = 0; err == MPI_SUCCESS && i < (int)count; i++) {
        const struct bounds old = bounds_of(call, types->numbers[i]);
        add(call, &bounds, &old, displs[i], lengths[i]);
    }
    if ((int)count < 1) {
        remember(call, err, newtype, bounds, &NO_ENDS);
        return;
    }
    const int last = (int)count - 1;
    const struct bounds begin = bounds_of(call, types->numbers[0]);
    const struct bounds end = bounds_of(call, types->numbers[last]);
    remember(call, err, newtype, bounds,
             &(struct ends){&begin, &end, lengths[0], lengths[last], displs[last], displs[last]});
}

static void bounds_of_Type_create_resized(const char *call, int err, u32 oldtype, u64 low,
                                          u64 extent, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds old = bounds_of(call, oldtype);
    if (err == MPI_SUCCESS) {
        add(call, &bounds, &old, 0, 1);
        bounds.low = near(call, (int64_t)low);
        bounds.high = near(call, (__int128)(int64_t)low + (int64_t)extent);
        bounds.is_shifted |= low != 0;
        bounds.is_packed = old.is_packed;
    }
    remember(call, err, newtype, bounds, &NO_ENDS); /* as simulated_type_create_resized does */
}

static void bounds_of_Type_dup(const char *call, int err, u32 oldtype, u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds old = bounds_of(call, oldtype);
    if (err == MPI_SUCCESS) {
        add(call, &bounds, &old, 0, 1);
        bounds.is_packed = old.is_packed;
    }
    remember(call, err, newtype, bounds, &NO_ENDS);
    if (err != MPI_SUCCESS || newtype == 0)
        return;
    struct handle *const made = &tables[H_DATATYPE].all[newtype];
    made->is_committed = tables[H_DATATYPE].all[oldtype].is_committed;
    made->bounds.least_step = least(made->bounds.least_step, old.least_step);
    made->bounds.most_step = most(made->bounds.most_step, old.most_step);
    made->bounds.again_before = old.again_before, made->bounds.again_behind = old.again_behind;
}

/* When Open MPI 5.0.11 packs or unpacks data on one rank, as a collective does with a rank's own
 * block, a resized MPI_PACKED still has one byte after the other. */
static void not_packed(const char *call, u32 oldtype)
{
    if (bounds_of(call, oldtype).is_packed)
        jail_trap(call, "MPI_PACKED cannot be resized");
}

static void commit(int err, u32 at)
{
    if (err == MPI_SUCCESS && at != 0)
        tables[H_DATATYPE].all[at].is_committed = 1;
}

/* A part of an array, treated as all of it: its data lies somewhere within, in order. */
static void within_array(const char *call, int err, u32 dimensions, const int *sizes, u32 oldtype,
                         u32 newtype)
{
    struct bounds bounds = NOTHING;
    const struct bounds old = bounds_of(call, oldtype);
    __int128 all = 1;
    for (int i = 0; err == MPI_SUCCESS && i < (int)dimensions; i++)
        all = near(call, all * sizes[i]);
    if (err == MPI_SUCCESS)
        add(call, &bounds, &old, 0, (int64_t)all);
    remember(call, err, newtype, bounds, &NO_ENDS);
}

static void within_sizes(const char *call, u32 dimensions, const int *sizes, const int *parts,
                         const int *starts)
{
    for (int i = 0; i < (int)dimensions; i++)
        if (sizes[i] < 1 || parts[i] < 1 || parts[i] > sizes[i] || starts[i] < 0 ||
            starts[i] > sizes[i] - parts[i])
            jail_trap(call, "the part of the array is not within the array");
}

static void bounds_of_Type_create_subarray(const char *call, int err, u32 dimensions,
                                           const int *sizes, const int *subsizes, const int *starts,
                                           u32 order, u32 oldtype, u32 newtype)
{
    (void)subsizes, (void)starts, (void)order;
    within_array(call, err, dimensions, sizes, oldtype, newtype);
}

#ifndef MPILAB_SIMULATED
static void on_grid(const char *call, u32 size, u32 rank, u32 dimensions, const int *sizes,
                    const int *distributions, const int *arguments, const int *grid)
{
    __int128 places = 1;
    int is_right = (int)size > 0 && (int)rank >= 0 && (int)rank < (int)size;
    for (int i = 0; is_right && i < (int)dimensions; i++) {
        const int by = distributions[i], of = arguments[i], on = grid[i];
        is_right = sizes[i] > 0 && on > 0 && (of > 0 || of == MPI_DISTRIBUTE_DFLT_DARG) &&
                   (by == MPI_DISTRIBUTE_BLOCK || by == MPI_DISTRIBUTE_CYCLIC ||
                    (by == MPI_DISTRIBUTE_NONE && on == 1)) &&
                   (by != MPI_DISTRIBUTE_BLOCK || of == MPI_DISTRIBUTE_DFLT_DARG ||
                    (int64_t)of * on >= sizes[i]);
        places *= on;
        is_right = is_right && places <= (int)size;
    }
    if (!is_right || places != (int)size)
        jail_trap(call, "the array is not distributed over a grid of these processes");
}

static void bounds_of_Type_create_darray(const char *call, int err, u32 size, u32 rank,
                                         u32 dimensions, const int *sizes, const int *distributions,
                                         const int *arguments, const int *grid, u32 order,
                                         u32 oldtype, u32 newtype)
{
    (void)size, (void)rank, (void)distributions, (void)arguments, (void)grid, (void)order;
    within_array(call, err, dimensions, sizes, oldtype, newtype);
}
#endif

/* --- buffers: everything that MPI may access of `count` elements of a type */

/* MPI may copy all of this, and computes the size of a copy in its own way: there must not be more
 * data than the memory could hold. */
static void *reach(const char *call, u32 at, const struct bounds *all)
{
    if (all->size <= 0) /* nothing is accessed */
        return at < NULL_ZONE || at > memory->size ? NULL : memory->data + at;
    if ((__int128)at + all->true_low < NULL_ZONE ||
        (__int128)at + all->true_high > (__int128)memory->size)
        jail_trap(call,
                  "the buffer, with this count and datatype, reaches outside the kernel's memory");
    if (all->size > INT32_MAX)
        jail_trap(call, "more data than a kernel's memory can have");
    return memory->data + at;
}

static void *typed(const char *call, u32 at, int64_t count, u32 type)
{
    struct bounds all = NOTHING;
    const struct bounds one = bounds_of(call, type);
    if (count < 0)
        jail_trap(call, "a count is negative");
    if (count > INT32_MAX)
        jail_trap(call, "more elements than an int can count");
    add(call, &all, &one, 0, count);
    if (at == JAIL_IN_PLACE && all.size > 0)
        jail_trap(call, "MPI_IN_PLACE is not a buffer here");
    return reach(call, at, &all);
}

static int in_place(const char *call, u32 at, int is_allowed)
{
    if (at == JAIL_IN_PLACE && !is_allowed)
        jail_trap(call, "MPI_IN_PLACE is not for this argument");
    return at == JAIL_IN_PLACE;
}

static void few(const char *call, int count, int ranks)
{
    if (count < 0)
        jail_trap(call, "a count is negative");
    if ((int64_t)count * ranks > INT32_MAX)
        jail_trap(call, "more elements than an int can count");
}

/* Some of MPI's own copies have room for one extent per element: they would overflow for datatypes
 * whose data lies outside their extent. */
#ifdef MPILAB_SIMULATED
enum { PLAIN = 1 }; /* wherever it copies */
#else
enum { PLAIN = 0 };
#endif

static void plain(const char *call, u32 type, int is_needed)
{
    const struct bounds one = bounds_of(call, type);
    if (is_needed && one.size > 0 &&
        (one.true_low < 0 || one.least_step < one.true_high || one.size > one.least_step))
        jail_trap(call, "the datatype has data outside of its extent, which MPI cannot have here");
}

static void all_plain(const char *call, const struct taken *types, int *counts, int is_needed)
{
    void **const natives = types->natives;
    for (int i = 0; i < types->count; i++) {
        natives[i] = committed(call, types->numbers[i]);
        counts[i] = with_data(call, types->numbers[i], counts[i]);
        plain(call, types->numbers[i], is_needed);
    }
}

static int size_of(const char *call, u32 comm)
{
    int size = 0;
    if (comm == 0)
        jail_trap(call, "the communicator is MPI_COMM_NULL");
    if (PMPI_Comm_size(native(call, H_COMM, comm), &size) != MPI_SUCCESS)
        jail_trap(call, "the communicator has no size");
    return size;
}

static int at_root(const char *call, u32 comm, u32 root)
{
    int rank = -1;
    if ((int)root < 0 || (int)root >= size_of(call, comm))
        jail_trap(call, "the root is not a rank of the communicator");
    PMPI_Comm_rank(native(call, H_COMM, comm), &rank);
    return rank == (int)root;
}

static int rank_in(const char *call, int size, u32 rank, int may_be_any)
{
    const int at = (int)rank;
    if (at != MPI_PROC_NULL && !(may_be_any && at == MPI_ANY_SOURCE) && (at < 0 || at >= size))
        jail_trap(call, "no rank of the communicator");
    return at;
}

static int tag_in(const char *call, u32 tag, int may_be_any)
{
    if ((int)tag < 0 && !(may_be_any && (int)tag == MPI_ANY_TAG))
        jail_trap(call, "the tag is negative");
    return (int)tag;
}

/* For each rank, a block with its own count and displacement. */
static void *spread(const char *call, u32 at, const int *counts, const int *displs, u32 type,
                    int size)
{
    struct bounds all = NOTHING;
    const struct bounds one = bounds_of(call, type);
    for (int rank = 0; rank < size; rank++) {
        few(call, counts[rank], 1);
        add_after(call, &all, &one, displs[rank], counts[rank]);
    }
    return reach(call, at, &all);
}

static void *spread_by_type(const char *call, u32 at, const int *counts, const int *displs,
                            const struct taken *types, int size)
{
    struct bounds all = NOTHING;
    for (int rank = 0; rank < size; rank++) {
        const struct bounds one = bounds_of(call, types->numbers[rank]);
        few(call, counts[rank], 1);
        add(call, &all, &one, displs[rank], counts[rank]);
    }
    return reach(call, at, &all);
}

static int64_t sum_of(const char *call, const int *counts, int size)
{
    int64_t sum = 0;
    for (int rank = 0; rank < size; rank++) {
        few(call, counts[rank], 1);
        sum += counts[rank];
    }
    return sum;
}

static int64_t own_of(const char *call, const int *counts, u32 comm)
{
    int rank = 0;
    PMPI_Comm_rank(native(call, H_COMM, comm), &rank);
    return counts[rank];
}

/* --- groups: MPI checks neither that ranks differ nor that a group is part of another */

static void distinct_ranks(const char *call, u32 group, u32 count, const int *ranks,
                           int must_differ)
{
    int size = 0;
    if (group == 0 || PMPI_Group_size(native(call, H_GROUP, group), &size) != MPI_SUCCESS)
        jail_trap(call, "the group is MPI_GROUP_NULL");
    char *const seen = memset(allocate(call, (size_t)size), 0, (size_t)size);
    for (int i = 0; i < (int)count; i++) {
        if (!must_differ && ranks[i] == MPI_PROC_NULL)
            continue;
        if (ranks[i] < 0 || ranks[i] >= size)
            jail_trap(call, "no rank of the group");
        if (must_differ && seen[ranks[i]]++)
            jail_trap(call, "a rank is there twice");
    }
    free(seen);
}

static void distinct_ranges(const char *call, u32 group, u32 count, const int *ranges)
{
    int size = 0, members = 0;
    if (group == 0 || PMPI_Group_size(native(call, H_GROUP, group), &size) != MPI_SUCCESS)
        jail_trap(call, "the group is MPI_GROUP_NULL");
    int *const all = allocate(call, (size_t)size * sizeof *all);
    for (int i = 0; i < (int)count; i++) {
        const int first = ranges[3 * i], last = ranges[3 * i + 1], stride = ranges[3 * i + 2];
        if (first < 0 || first >= size || last < 0 || last >= size || stride == 0)
            jail_trap(call, "no range of the group's ranks");
        for (int64_t at = first; stride > 0 ? at <= last : at >= last; at += stride) {
            if (members == size)
                jail_trap(call, "a rank is there twice");
            all[members++] = (int)at;
        }
    }
    distinct_ranks(call, group, (u32)members, all, 1);
    free(all);
}

static void subgroup(const char *call, u32 comm, u32 group)
{
    MPI_Group of = MPI_GROUP_NULL, both = MPI_GROUP_NULL;
    int members = 0, common = 0;
    size_of(call, comm);
    if (group == 0)
        jail_trap(call, "the group is MPI_GROUP_NULL");
    PMPI_Comm_group(native(call, H_COMM, comm), &of);
    PMPI_Group_intersection(of, native(call, H_GROUP, group), &both);
    PMPI_Group_size(native(call, H_GROUP, group), &members);
    PMPI_Group_size(both, &common);
    PMPI_Group_free(&both);
    PMPI_Group_free(&of);
    if (common != members)
        jail_trap(call, "the group has a rank that is not in the communicator");
}

/* --- statuses: what the kernel may read, and how many bytes arrived */

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
    if (count <= 0 || span(call, at, count, sizeof(struct inside_status)) == NULL)
        return NULL;
    MPI_Status *const taken = allocate(call, (size_t)count * sizeof *taken);
    return memset(taken, 0, (size_t)count * sizeof *taken);
}

static void give_statuses(const char *call, u32 at, int count, const MPI_Status *taken)
{
    for (int i = 0; taken != NULL && i < count; i++)
        put_status(span(call, at + (u32)i * (u32)sizeof(struct inside_status), 1,
                        sizeof(struct inside_status)),
                   &taken[i]);
}

#ifndef MPILAB_SIMULATED
/* --- files */

enum { SPLIT = 1, SPLIT_AT };

static void not_split(const char *call, u32 file)
{
    const struct handle *const handle = handle_at(call, H_FILE, file);
    if (handle == NULL || handle->split != 0)
        jail_trap(call, "another read of this file has not ended");
}

static void begin_split(const char *call, int err, u32 file, int which)
{
    if (err != MPI_SUCCESS)
        return;
    handle_at(call, H_FILE, file)->split = which;
    held++;
}

static void end_split(const char *call, u32 file, int which)
{
    struct handle *const handle = handle_at(call, H_FILE, file);
    if (handle == NULL || handle->split != which)
        jail_trap(call, "no such read of this file has begun");
    handle->split = 0, held--;
}

/* MPI does not check that an offset, in etypes, is within what a file can have: its own request
 * then fails, and Open MPI has no error handler for that. */
static void in_file(const char *call, u32 file, int64_t offset)
{
    const struct handle *const handle = handle_at(call, H_FILE, file);
    if (handle == NULL)
        jail_trap(call, "the file is the null handle");
    if (offset < 0 || (__int128)offset * most(handle->bounds.most_step, 1) > FAR)
        jail_trap(call, "the offset is negative, or farther than any file reaches");
}

static void seek_in_file(const char *call, u32 file, int64_t offset, u32 whence)
{
    MPI_Offset begin = 0, step = 0;
    MPI_File n_file = native(call, H_FILE, file);
    if ((int)whence == MPI_SEEK_CUR)
        PMPI_File_get_position(n_file, &begin);
    if ((int)whence == MPI_SEEK_END) { /* in etypes, of which each has one byte or more */
        PMPI_File_get_size(n_file, &step);
        in_file(call, file, step);
        begin = offset < 0 ? -offset : 0;
    }
    if (offset > 0 ? begin > INT64_MAX - offset : offset < -begin)
        jail_trap(call, "the offset is negative, or farther than any file reaches");
    in_file(call, file, begin + offset);
}

static int is_romio(const char *call, u32 file)
{
    MPI_Info hints = MPI_INFO_NULL;
    char value[2];
    int is_there = 0;
    if (PMPI_File_get_info(native(call, H_FILE, file), &hints) != MPI_SUCCESS)
        return 1;
    PMPI_Info_get(hints, "romio_cb_read", sizeof value - 1, value, &is_there);
    PMPI_Info_free(&hints);
    return is_there;
}

/* MPI requires that the data of a view's datatypes is in file order, without duplicates. ROMIO fails
 * in the same way for those of a read, and adds the lower bound of a resized datatype to the address
 * of its data. */
static void in_file_order(const char *call, const struct bounds *type)
{
    if (type->size <= 0 || !type->is_ordered || type->true_low < 0 || type->low < 0 ||
        type->least_step < type->true_high - type->true_low)
        jail_trap(call, "the data of the datatype are not in the order of a file");
}

static void read_as(const char *call, u32 file, u32 type)
{
    const struct handle *const handle = handle_at(call, H_DATATYPE, type);
    if (handle == NULL || handle->is_empty)
        return;
    in_file_order(call, &handle->bounds);
    if (handle->bounds.is_shifted && is_romio(call, file))
        jail_trap(call, "MPI-IO by ROMIO misplaces data of a resized datatype with a lower bound");
}

/* ROMIO, of MPICH, has no nonblocking collective reads as a part of Open MPI 5.0, which calls them
 * nevertheless. */
static void not_romio(const char *call, u32 file)
{
    if (is_romio(call, file))
        jail_trap(call, "MPI-IO by ROMIO has no such call");
}
#endif

#pragma GCC diagnostic ignored "-Wunused-parameter" /* `unused`: all instances share one process */

#include "calls.inc"

/* --- written by hand: calls that follow no rule */

static int64_t bytes_in(const char *call, u32 status)
{
    struct inside_status inside;
    memcpy(&inside, must_span(call, status, sizeof inside), sizeof inside);
    if (inside.bytes < 0 || inside.bytes > INT32_MAX)
        jail_trap(call, "the status is none that MPI has made");
    return inside.bytes;
}

IMPORT(u32, MPI_Get_count, u32 status, u32 datatype, u32 count)
{
    int size = 0;
    need("MPI_Get_count", QUERIES);
    const int64_t bytes = bytes_in("MPI_Get_count", status);
    const int err = PMPI_Type_size(native("MPI_Get_count", H_DATATYPE, datatype), &size);
    if (err != MPI_SUCCESS)
        return (u32)err;
    const int64_t whole = size == 0 ? 0 : bytes / size;
    const int fits = size == 0 ? bytes == 0 : bytes % size == 0 && whole <= INT32_MAX;
    store("MPI_Get_count", count, (u32)(fits ? (int)whole : MPI_UNDEFINED));
    return MPI_SUCCESS;
}

#ifdef MPILAB_SIMULATED
IMPORT(u32, MPI_Get_elements, u32 status, u32 datatype, u32 count)
{
    (void)status, (void)datatype, (void)count;
    jail_not_simulated("MPI_Get_elements");
}
#else
IMPORT(u32, MPI_Get_elements, u32 status, u32 datatype, u32 count)
{
    MPI_Status made_up;
    int elements = 0;
    need("MPI_Get_elements", QUERIES);
    memset(&made_up, 0, sizeof made_up);
    const int64_t bytes = bytes_in("MPI_Get_elements", status);
    PMPI_Status_set_elements_x(&made_up, MPI_BYTE, bytes);
    const int err = PMPI_Get_elements(&made_up, committed("MPI_Get_elements", datatype), &elements);
    store("MPI_Get_elements", count, (u32)elements);
    return (u32)err;
}
#endif

IMPORT(u32, MPI_Test_cancelled, u32 status, u32 flag)
{
    struct inside_status inside;
    need("MPI_Test_cancelled", QUERIES);
    memcpy(&inside, must_span("MPI_Test_cancelled", status, sizeof inside), sizeof inside);
    store("MPI_Test_cancelled", flag, (u32)(inside.cancelled != 0));
    return MPI_SUCCESS;
}

/* The position in the packed buffer, after a check that it is in there. */
static int position_in(const char *call, u32 position, u32 size)
{
    const u32 at = load(call, position);
    if (size > INT32_MAX || at > size)
        jail_trap(call, "the position is outside of the packed buffer");
    return (int)at;
}

IMPORT(u32, MPI_Pack, u32 in, u32 count, u32 datatype, u32 out, u32 size, u32 position, u32 comm)
{
    const char *const call = "MPI_Pack";
    need(call, CALLS);
    int at = position_in(call, position, size);
    void *const to = span(call, out, size, 1);
    const int err =
        MPI_Pack(typed(call, in, (int)count, datatype), with_data(call, datatype, (int)count),
                 committed(call, datatype), to, (int)size, &at, native(call, H_COMM, comm));
    store(call, position, (u32)at);
    return (u32)err;
}

IMPORT(u32, MPI_Unpack, u32 in, u32 size, u32 position, u32 out, u32 count, u32 datatype, u32 comm)
{
    const char *const call = "MPI_Unpack";
    need(call, CALLS);
    int at = position_in(call, position, size);
    const void *const from = span(call, in, size, 1);
    const int err = MPI_Unpack(from, (int)size, &at, typed(call, out, (int)count, datatype),
                               with_data(call, datatype, (int)count), committed(call, datatype),
                               native(call, H_COMM, comm));
    store(call, position, (u32)at);
    return (u32)err;
}

IMPORT(double, MPI_Wtime)
{
    need("MPI_Wtime", QUERIES);
    return MPI_Wtime();
}
IMPORT(double, MPI_Wtick)
{
    need("MPI_Wtick", QUERIES);
    return MPI_Wtick();
}

/* Attributes: only with keys that the kernel has made. MPI's own are addresses outside. */
struct keyval {
    int key;
    int is_freed; /* MPI may then give its number to others, outside */
    u32 copy, delete, extra;
};
enum { MOST_KEYS = 1 << 16 };
static struct keyval *keys[MOST_KEYS];
static u32 key_count = 1;

static struct keyval *key_of(const char *call, u32 number)
{
    if (number == 0 || number >= key_count || keys[number]->is_freed)
        jail_trap(call, "the key is none that the kernel has made");
    return keys[number];
}

/* A communicator as an argument of the kernel's function for an attribute. It stays while that
 * function runs: MPI continues to use it. */
struct lent_comm {
    u32 at;
    int was_running, was_known;
};

static struct lent_comm begin_attribute(MPI_Comm comm)
{
    struct lent_comm lent = {0, running, find(H_COMM, comm) != 0};
    lent.at = lend(H_COMM, comm);
    running = ATTRIBUTE;
    tables[H_COMM].all[lent.at].in_use++;
    return lent;
}

static void end_attribute(struct lent_comm lent)
{
    tables[H_COMM].all[lent.at].in_use--;
    running = lent.was_running;
    if (!lent.was_known)
        drop(H_COMM, lent.at);
}

static int copied(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    const u32 number = (u32)(uintptr_t)extra;
    const struct keyval of = *keys[number];
    (void)key;
    *flag = 0;
    if (of.copy == 0)
        return MPI_SUCCESS;
    const struct lent_comm lent = begin_attribute(comm);
    u32 inside[2] = {0, 0};
    const u32 returned =
        inside_copy(of.copy, lent.at, number, of.extra, (u32)(uintptr_t)value, inside);
    end_attribute(lent);
    *flag = inside[1] != 0;
    if (*flag)
        *(void **)copy = (void *)(uintptr_t)inside[0];
    return (int)returned;
}

static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    const u32 number = (u32)(uintptr_t)extra;
    const struct keyval of = *keys[number];
    (void)key;
    if (of.delete == 0)
        return MPI_SUCCESS;
    const struct lent_comm lent = begin_attribute(comm);
    const u32 returned = inside_delete(of.delete, lent.at, number, (u32)(uintptr_t)value, of.extra);
    end_attribute(lent);
    return (int)returned;
}

/* The function is called for a communicator that is in use until it returns. */
static MPI_Comm changed_by_callbacks(const char *call, u32 comm)
{
    if (comm != 0 && handle_at(call, H_COMM, comm)->in_use > 0 && running == ATTRIBUTE)
        jail_trap(call, "the communicator is in use by MPI");
    return native(call, H_COMM, comm);
}

/* In a simulation, all ranks share MPI_COMM_WORLD: one rank's function for its attributes would run,
 * in that rank's memory, when others duplicate it. */
static MPI_Comm with_attributes(const char *call, u32 comm)
{
    const MPI_Comm found = changed_by_callbacks(call, comm);
    if (found == MPI_COMM_WORLD)
        jail_trap(call,
                  "MPI_COMM_WORLD is not the kernel's own: keep attributes on its communicator");
    return found;
}

IMPORT(u32, MPI_Comm_create_keyval, u32 copy, u32 delete, u32 key, u32 extra)
{
    const char *const call = "MPI_Comm_create_keyval";
    need(call, CALLS);
    must_span(call, key, 4);
    struct keyval *const made = key_count < MOST_KEYS ? malloc(sizeof *made) : NULL;
    if (made == NULL)
        jail_trap(call, "the kernel has made more keys than it may have");
    const u32 number = key_count++;
    *made = (struct keyval){MPI_KEYVAL_INVALID, 1, copy, delete, extra};
    keys[number] = made;
    const int err = MPI_Comm_create_keyval(copied, deleted, &made->key, (void *)(uintptr_t)number);
    made->is_freed = err != MPI_SUCCESS;
    store(call, key, err == MPI_SUCCESS ? number : (u32)MPI_KEYVAL_INVALID);
    return (u32)err;
}

/* The key is freed, but not what its attributes need: they may outlive it. */
IMPORT(u32, MPI_Comm_free_keyval, u32 key)
{
    const char *const call = "MPI_Comm_free_keyval";
    need(call, FREES);
    struct keyval *const freed = key_of(call, load(call, key));
    freed->is_freed = 1;
    const int err = MPI_Comm_free_keyval(&freed->key);
    store(call, key, (u32)MPI_KEYVAL_INVALID);
    return (u32)err;
}

IMPORT(u32, MPI_Comm_delete_attr, u32 comm, u32 key)
{
    const char *const call = "MPI_Comm_delete_attr";
    need(call, CALLS);
    const int number = key_of(call, key)->key;
    return (u32)MPI_Comm_delete_attr(with_attributes(call, comm), number);
}

IMPORT(u32, MPI_Comm_get_attr, u32 comm, u32 key, u32 value, u32 flag)
{
    const char *const call = "MPI_Comm_get_attr";
    void *found = NULL;
    int is_there = 0;
    need(call, QUERIES);
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
    need(call, CALLS);
    const int number = key_of(call, key)->key;
    return (u32)MPI_Comm_set_attr(with_attributes(call, comm), number, (void *)(uintptr_t)value);
}

/* MPI does not say which operation it calls, so a limited number are distinguished by separate
 * functions. Data that MPI holds outside is copied in and out. */
enum { MOST_OPERATIONS = 64 };
static struct {
    u32 function; /* 0: the entry is free */
} combining[MOST_OPERATIONS];

static void combine(int which, void *in, void *inout, int count, MPI_Datatype type)
{
    const struct bounds one = asked(type);
    const __int128 all = (__int128)(count - 1) * extent_of(&one);
    const int64_t first = near("MPI_Op", one.true_low + (all < 0 ? all : 0));
    const int64_t last = near("MPI_Op", one.true_high + (all > 0 ? all : 0));
    if (count <= 0 || one.size <= 0 || last <= first)
        return;
    const size_t bytes = (size_t)(last - first);
    char *const copies = mpilab_jail_allocate(2 * bytes);
    if (copies == NULL)
        jail_trap("MPI_Op", "no memory for the operation's data");
    memcpy(copies, (char *)in + first, bytes);
    memcpy(copies + bytes, (char *)inout + first, bytes);
    const int before = running;
    const int is_known = find(H_DATATYPE, type) != 0;
    const u32 at = lend(H_DATATYPE, type);
    running = COMBINING;
    inside_combine(combining[which].function, (u32)(jail_address(copies) - (u32)first),
                   (u32)(jail_address(copies + bytes) - (u32)first), (u32)count, at);
    running = before;
    if (!is_known)
        drop(H_DATATYPE, at);
    memcpy((char *)inout + first, copies + bytes, bytes);
    mpilab_jail_free(copies);
}

#define EIGHT(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7)
#define ALL(of)   \
    EIGHT(of, 0)  \
    EIGHT(of, 01) \
    EIGHT(of, 02) EIGHT(of, 03) EIGHT(of, 04) EIGHT(of, 05) EIGHT(of, 06) EIGHT(of, 07)
#define COMBINE(n)                                                                 \
    static void combine_##n(void *in, void *inout, int *count, MPI_Datatype *type) \
    {                                                                              \
        combine(n, in, inout, *count, *type);                                      \
    }
#define COMBINES(n) combine_##n,
ALL(COMBINE)

IMPORT(u32, MPI_Op_create, u32 function, u32 commute, u32 op)
{
    static MPI_User_function *const all[MOST_OPERATIONS] = {ALL(COMBINES)};
    const char *const call = "MPI_Op_create";
    int slot = 0;
    MPI_Op n_op = MPI_OP_NULL;
    need(call, CALLS);
    must_span(call, op, 4);
    if (function == 0)
        jail_trap(call, "an argument is NULL");
    while (slot < MOST_OPERATIONS && combining[slot].function != 0)
        slot++;
    if (slot == MOST_OPERATIONS)
        jail_trap(call, "more operations than a kernel may have");
    const int err = MPI_Op_create(all[slot], (int)commute, &n_op);
    const u32 at = new_handle(H_OP, n_op);
    store(call, op, at);
    if (err == MPI_SUCCESS && at != 0) {
        combining[slot].function = function;
        tables[H_OP].all[at].slot = slot + 1;
    }
    return (u32)err;
}

/* Its entry can be reused, unless MPI may still call it for a reduction. */
IMPORT(u32, MPI_Op_free, u32 op)
{
    const char *const call = "MPI_Op_free";
    need(call, FREES);
    const u32 at = load(call, op);
    MPI_Op n_op = release(call, H_OP, at);
    const int slot = tables[H_OP].all[at].slot;
    const int err = MPI_Op_free(&n_op);
    if (n_op == MPI_OP_NULL && slot > 0 && held == 0)
        combining[slot - 1].function = 0;
    store(call, op, changed(H_OP, at, n_op));
    return (u32)err;
}

/* Copy a text of MPI, with its terminator, to the kernel's memory. */
static void put_text(const char *call, u32 at, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    memcpy(must_span(call, at, (int64_t)bytes), text, bytes);
}

IMPORT(u32, MPI_Error_string, u32 code, u32 text, u32 length)
{
    const char *const call = "MPI_Error_string";
    char said[MPI_MAX_ERROR_STRING + 1] = "";
    int bytes = 0;
    need(call, QUERIES);
    const int err = MPI_Error_string((int)code, said, &bytes);
    put_text(call, text, said);
    store(call, length, (u32)bytes);
    return (u32)err;
}

IMPORT(u32, MPI_Get_processor_name, u32 name, u32 length)
{
    const char *const call = "MPI_Get_processor_name";
    char said[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int bytes = 0;
    need(call, QUERIES);
    const int err = MPI_Get_processor_name(said, &bytes);
    put_text(call, name, said);
    store(call, length, (u32)bytes);
    return (u32)err;
}

IMPORT(u32, MPI_Abort, u32 comm, u32 code)
{
    need("MPI_Abort", QUERIES);
    return (u32)MPI_Abort(native("MPI_Abort", H_COMM, comm), (int)code);
}

/* A text that ends within the memory. */
static const char *text_at(const char *call, u32 at)
{
    const char *const text = must_span(call, at, 1);
    if (memchr(text, 0, (size_t)((char *)memory->data + memory->size - text)) == NULL)
        jail_trap(call, "a text has no end in the kernel's memory");
    return text;
}

/* The buffer for MPI_Bsend is outside: MPI keeps its own lists in it. */
static struct {
    void *outside;
    u32 inside;
} attached;

IMPORT(u32, MPI_Buffer_attach, u32 buffer, u32 bytes)
{
    const char *const call = "MPI_Buffer_attach";
    need(call, CALLS);
    if ((int)bytes < 0 || must_span(call, buffer, (int)bytes) == NULL)
        jail_trap(call, "the buffer's size is negative");
    if (attached.outside != NULL)
        jail_trap(call, "another buffer is attached");
    void *const outside = allocate(call, bytes);
    const int err = MPI_Buffer_attach(outside, (int)bytes);
    if (err != MPI_SUCCESS) {
        free(outside);
        return (u32)err;
    }
    attached.outside = outside, attached.inside = buffer;
    return (u32)err;
}

IMPORT(u32, MPI_Buffer_detach, u32 address, u32 bytes)
{
    const char *const call = "MPI_Buffer_detach";
    void *detached = NULL;
    int size = 0;
    need(call, CALLS);
    must_span(call, address, 4), must_span(call, bytes, 4);
    if (attached.outside == NULL)
        jail_trap(call, "no buffer is attached");
    const int err = MPI_Buffer_detach(&detached, &size);
    if (err != MPI_SUCCESS)
        return (u32)err;
    free(attached.outside);
    attached.outside = NULL;
    store(call, address, attached.inside);
    store(call, bytes, (u32)size);
    return (u32)err;
}

IMPORT(u32, MPI_Info_set, u32 info, u32 key, u32 value)
{
    const char *const call = "MPI_Info_set";
    need(call, CALLS);
    if (info == 0)
        jail_trap(call, "the info object is the null handle");
    return (u32)MPI_Info_set(native(call, H_INFO, info), text_at(call, key), text_at(call, value));
}

IMPORT(u32, MPI_Info_get, u32 info, u32 key, u32 most_bytes, u32 value, u32 flag)
{
    const char *const call = "MPI_Info_get";
    char found[MPI_MAX_INFO_VAL + 1] = "";
    int is_there = 0;
    need(call, CALLS);
    if (info == 0 || (int)most_bytes < 0)
        jail_trap(call, "the info object is the null handle, or the length is negative");
    const int bytes = (int)most_bytes < MPI_MAX_INFO_VAL ? (int)most_bytes : MPI_MAX_INFO_VAL;
    const int err =
        MPI_Info_get(native(call, H_INFO, info), text_at(call, key), bytes, found, &is_there);
    if (is_there)
        put_text(call, value, found);
    store(call, flag, (u32)is_there);
    return (u32)err;
}

#ifndef MPILAB_SIMULATED
/* Those of a kernel's hints on collective reads that are numbers: MPI trusts what it is told. The
 * caller frees them. */
static MPI_Info hints_of(const char *call, u32 info)
{
    static const char *const heeded[] = {"cb_nodes", "cb_buffer_size"};
    MPI_Info given = native(call, H_INFO, info), hints = MPI_INFO_NULL;
    char value[32];
    if (given == MPI_INFO_NULL)
        return hints;
    PMPI_Info_create(&hints);
    for (size_t i = 0; i < sizeof heeded / sizeof *heeded; i++) {
        int is_there = 0;
        PMPI_Info_get(given, heeded[i], sizeof value - 1, value, &is_there);
        char *end = value;
        const long number = is_there ? strtol(value, &end, 10) : 0;
        if (is_there && *end == '\0' && number > 0 && number <= INT32_MAX)
            PMPI_Info_set(hints, heeded[i], value);
    }
    return hints;
}

IMPORT(u32, MPI_File_set_view, u32 file, u64 offset, u32 etype, u32 filetype, u32 representation,
       u32 info)
{
    const char *const call = "MPI_File_set_view";
    need(call, CALLS);
    const struct bounds element = bounds_of(call, etype), all = bounds_of(call, filetype);
    in_file_order(call, &element);
    in_file_order(call, &all);
    not_split(call, file);
    if (handle_at(call, H_FILE, file)->in_use > 0)
        jail_trap(call, "it would change the view of a file that is still being read");
    if (all.size % element.size != 0 || (int64_t)offset < 0 || (int64_t)offset > FAR)
        jail_trap(call, "the filetype is not made of whole etypes, or the offset is negative");
    if (strcmp(text_at(call, representation), "native") != 0)
        jail_trap(call, "no representation but \"native\" is offered");
    MPI_Info hints = hints_of(call, info);
    const int err =
        MPI_File_set_view(native(call, H_FILE, file), (MPI_Offset)offset, committed(call, etype),
                          committed(call, filetype), "native", hints);
    struct handle *const handle = handle_at(call, H_FILE, file);
    handle->is_broken = err != MPI_SUCCESS;
    handle->bounds.most_step = all.most_step;
    if (hints != MPI_INFO_NULL)
        PMPI_Info_free(&hints);
    return (u32)err;
}

/* A datatype that MPI made: basic ones are known, the kernel must free others. */
static u32 datatype_made(MPI_Datatype type)
{
    const u32 known = type == MPI_DATATYPE_NULL ? 0 : find(H_DATATYPE, type);
    if (known != 0 || type == MPI_DATATYPE_NULL)
        return known;
    const u32 at = new_handle(H_DATATYPE, type);
    tables[H_DATATYPE].all[at].bounds = asked(type);
    tables[H_DATATYPE].all[at].is_empty = tables[H_DATATYPE].all[at].bounds.size == 0;
    tables[H_DATATYPE].all[at].is_committed = 1;
    return at;
}

IMPORT(u32, MPI_File_get_view, u32 file, u32 offset, u32 etype, u32 filetype, u32 representation)
{
    const char *const call = "MPI_File_get_view";
    MPI_Datatype n_etype = MPI_DATATYPE_NULL, n_filetype = MPI_DATATYPE_NULL;
    MPI_Offset n_offset = 0;
    char said[MPI_MAX_DATAREP_STRING + 1] = "";
    need(call, CALLS);
    must_span(call, etype, 4), must_span(call, filetype, 4);
    const int err =
        MPI_File_get_view(native(call, H_FILE, file), &n_offset, &n_etype, &n_filetype, said);
    store_wide(call, offset, (u64)n_offset);
    store(call, etype, datatype_made(n_etype));
    store(call, filetype, datatype_made(n_filetype));
    put_text(call, representation, said);
    return (u32)err;
}
#endif

/* What the kernel's memory is used for, which inside.c reports. Nothing depends on it but what counts
 * as left over. */
IMPORT(void, mpilab_statics, u32 begin, u32 end)
{
    const void *const first = must_span("mpilab_statics", begin, 0);
    leftovers_inside(jail_memory->data, first, must_span("mpilab_statics", end, 0));
}

IMPORT(void, mpilab_memory_made, u32 made, u32 bytes)
{
    if (made != 0)
        leftover_made(MPILAB_malloc, (uintptr_t)must_span("mpilab_memory_made", made, bytes), bytes,
                      CALL_SITE);
}

IMPORT(void, mpilab_memory_freed, u32 freed)
{
    leftover_freed(jail_memory->data + freed); /* only a key: nothing is accessed */
}

IMPORT(void, mpilab_place, u32 place)
{
    need("mpilab_place", QUERIES);
    memcpy(must_span("mpilab_place", place, sizeof(struct mpilab_place)), mpilab_place(),
           sizeof(struct mpilab_place));
}

/* --- WASI: only what printing, exit() and a loop that polls need */

/* All pieces are checked before the first one is written. Like Linux, it accepts a limited number of
 * pieces, and of bytes in all. */
WASI(u32, fd_write, u32 descriptor, u32 pieces, u32 count, u32 written)
{
    enum { MOST_PIECES = 1024, EBADF_INSIDE = 8, EINVAL_INSIDE = 28 };
    FILE *const to = descriptor == 1 ? stdout : stderr;
    struct {
        u32 at, bytes;
    } all[MOST_PIECES];
    u64 sum = 0;
    if (descriptor != 1 && descriptor != 2)
        return EBADF_INSIDE;
    if (count > MOST_PIECES)
        return EINVAL_INSIDE;
    must_span("printf", written, 4);
    if (count > 0)
        memcpy(all, must_span("printf", pieces, (int64_t)count * (int64_t)sizeof *all),
               count * sizeof *all);
    for (u32 i = 0; i < count; i++) {
        if (all[i].bytes > 0)
            must_span("printf", all[i].at, all[i].bytes);
        sum += all[i].bytes;
    }
    if (sum > INT32_MAX)
        return EINVAL_INSIDE;
    for (u32 i = 0; i < count; i++)
        if (all[i].bytes > 0)
            fwrite(memory->data + all[i].at, 1, all[i].bytes, to);
    fflush(to);
    store("printf", written, (u32)sum);
    return 0;
}

WASI(u32, fd_close, u32 descriptor)
{
    return 0;
}

WASI(u32, fd_seek, u32 descriptor, u64 offset, u32 whence, u32 at)
{
    return 29; /* ESPIPE */
}

WASI(u32, fd_fdstat_get, u32 descriptor, u32 at)
{
    char *const state = must_span("printf", at, 24);
    memset(state, 0, 24);
    state[0] = 2; /* a terminal, so that lines are written at once */
    return 0;
}

WASI(u32, sched_yield)
{
    return 0;
}

WASI(void, proc_exit, u32 status)
{
    char why[60];
    snprintf(why, sizeof why, "it called exit(%d)", (int)status);
    jail_trap("the kernel", why);
}

/* --- a call of the kernel */

static void fix_datatype(MPI_Datatype type)
{
    const u32 at = fix(H_DATATYPE, type);
    tables[H_DATATYPE].all[at].bounds = asked(type);
}

void jail_begin(void)
{
    recorder_fault_meaning = jail_fault;
    fix(H_COMM, MPI_COMM_WORLD), fix(H_COMM, MPI_COMM_SELF);
    fix(H_GROUP, MPI_GROUP_EMPTY);
    fix(H_MESSAGE, MPI_MESSAGE_NO_PROC);
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
    running = KERNEL;
}

/* Lent handles become invalid; the kernel keeps what it has made. */
void jail_leave(void)
{
    if (held > 0)
        jail_trap("the kernel",
                  "it returned while a collective or a read that it began was not complete");
    running = NONE;
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
    return lend(H_DATATYPE, type);
}

u32 jail_numbers(const int *outside, int count)
{
    if (outside == NULL)
        return 0;
    /* One page or more per call, freed when it ends (trampoline.c). */
    int *const copy = mpilab_jail_allocate((size_t)count * sizeof *copy);
    if (copy == NULL)
        jail_trap("the harness", "no memory for the counts of the call");
    memcpy(copy, outside, (size_t)count * sizeof *copy);
    return jail_address(copy);
}
