/* The file of a recording: open, one record a call, finish, close. */
#define _GNU_SOURCE
#include "recorder.h"
#include "memory.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

_Static_assert(sizeof(struct mpilab_record) == 104, "recording.py relies on the layout");
_Static_assert(sizeof(struct mpilab_header) == 1640, "recording.py relies on the layout");

static struct mpilab_header *header;
static struct mpilab_record *records;
static size_t mapped_bytes;
static char file_path[PATH_MAX];
static uintptr_t load_address;

static int is_on;

/* A loop may poll at this many places and still keep one record for each. */
enum { POLLS_IN_A_LOOP = 8 };

enum { PREPARED_BYTES = 1 << 16 };

/* The calls that this rank is in: one, or more if MPI calls a function of the kernel (to delete
 * an attribute, say) that itself calls MPI. */
enum { NESTED_CALLS = 8 };
static struct call {
    uintptr_t site;
    int64_t record;
} calls[NESTED_CALLS];
static int depth;

/* The record of a call whose record does not fit into the file: the call is made all the same. */
static struct mpilab_record overflow;
/* The record of calls while nothing is recorded. */
static struct mpilab_record nowhere;

int64_t record_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int recorder_is_on(void)
{
    return is_on;
}

static int strict_unrecorded;

int recorder_is_strict(void)
{
    return is_on ? header->strict : strict_unrecorded;
}

void mpilab_recorder_strict(int strict)
{
    strict_unrecorded = strict;
}

struct mpilab_header *recorder_header(void)
{
    return header;
}

/* Also called by signal handlers, which must not call snprintf. */
static size_t append(char *to, size_t at, size_t room, const char *text)
{
    while (*text != 0 && at + 1 < room)
        to[at++] = *text++;
    to[at] = 0;
    return at;
}

int recorder_note_trap(const char *where, const char *why)
{
    if (header == NULL)
        return 0;
    if (header->trap[0] != 0)
        return 1;
    size_t at = append(header->trap, 0, sizeof header->trap, where);
    at = append(header->trap, at, sizeof header->trap, ": ");
    append(header->trap, at, sizeof header->trap, why);
    return 1;
}

const char *(*recorder_fault_meaning)(uintptr_t address, uintptr_t stack);

static uintptr_t stack_of(const void *context)
{
#if defined(__linux__) && defined(__x86_64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
#elif defined(__linux__) && defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.sp;
#else
    (void)context;
    return 0;
#endif
}

void recorder_note_fault(const void *address, const void *context)
{
    if (recorder_fault_meaning == NULL)
        return;
    const char *const why = recorder_fault_meaning((uintptr_t)address, stack_of(context));
    if (why != NULL)
        recorder_note_trap("the kernel", why);
}

uint64_t recorder_offset(uintptr_t address)
{
    return address == 0 ? 0 : address - load_address;
}

/* Only while in a call. */
static struct call *innermost(void)
{
    return &calls[(depth < NESTED_CALLS ? depth : NESTED_CALLS) - 1];
}

static void enter(uintptr_t site)
{
    depth++;
    *innermost() = (struct call){site, MPILAB_NONE};
}

static void leave(void)
{
    depth--;
    header->current = depth == 0 ? MPILAB_NONE : innermost()->record;
}

uintptr_t recorder_call_site(void)
{
    return depth == 0 ? 0 : innermost()->site;
}

void record_progress(void)
{
    if (is_on)
        header->progress++;
}

int record_index(const struct mpilab_record *record)
{
    return record == &overflow || record == &nowhere ? MPILAB_NONE : (int)(record - records);
}

void record_mark_leak(int index)
{
    record_at(index)->flags |= MPILAB_LEAKED;
}

void record_unmark_leak(int index)
{
    record_at(index)->flags &= (uint16_t)~MPILAB_LEAKED;
}

struct mpilab_record *record_at(int index)
{
    return header == NULL || index == MPILAB_NONE ? &overflow : &records[index];
}

static void clear_record(struct mpilab_record *record, enum mpilab_operation operation, int flags,
                         uintptr_t site)
{
    memset(record, 0, sizeof *record);
    record->operation = (uint16_t)operation;
    record->flags = (uint16_t)flags;
    record->peer = record->tag = record->got_peer = record->got_tag = MPILAB_NONE;
    record->waiter = MPILAB_NONE;
    record->offset = MPILAB_NONE;
    record->site = site - load_address;
}

void record_leftover(enum mpilab_operation operation, int64_t bytes, uintptr_t site,
                     int64_t made_ns)
{
    if (header->count == header->capacity)
        return;
    struct mpilab_record *const record = &records[header->count];
    clear_record(record, operation, MPILAB_LEAKED, site);
    record->bytes = bytes;
    record->begin_ns = record->end_ns = record->done_ns = made_ns;
    header->count++;
}

struct mpilab_record *record_add(enum mpilab_operation operation, int flags, MPI_Comm comm,
                                 uintptr_t site)
{
    if (!is_on)
        return &nowhere;
    struct mpilab_record *record = &overflow;
    int64_t index = MPILAB_NONE;
    if (header->count < header->capacity) {
        index = header->count;
        record = &records[index];
    } else {
        header->dropped++;
    }

    clear_record(record, operation, flags, site);
    record->begin_ns = record_clock();
    header->progress++;
    if (record != &overflow)
        header->count++;
    innermost()->record = header->current = index;
    /* Last: querying a communicator that has been freed may end this rank. */
    record->communicator = communicator_number(comm);
    return record;
}

struct mpilab_record *record_begin(enum mpilab_operation operation, int flags, MPI_Comm comm,
                                   uintptr_t site)
{
    if (!is_on)
        return &nowhere;
    /* Entered first: the recorder's own queries about `comm` are not calls of the kernel. */
    enter(site);
    return record_add(operation, flags, comm, site);
}

int record_end(struct mpilab_record *record, int error)
{
    if (!is_on || record == &nowhere)
        return error;
    if (error != MPI_SUCCESS)
        record->error = recorder_error_class(error);
    record->end_ns = record_clock();
    if (memory_is_watched)
        memory_look(record_index(record));
    leave();
    /* A rank that polls repeatedly makes no progress. */
    if (!((record->flags & MPILAB_POLLS) && record->count > 1))
        header->progress++;
    return error;
}

struct mpilab_record *record_repeated_poll(enum mpilab_operation operation, uintptr_t site)
{
    if (!is_on)
        return NULL;
    const int64_t oldest = header->count > POLLS_IN_A_LOOP ? header->count - POLLS_IN_A_LOOP : 0;
    for (int64_t i = header->count - 1; i >= oldest && (records[i].flags & MPILAB_POLLS); i--)
        if (records[i].operation == operation && records[i].site == site - load_address) {
            enter(site);
            return &records[i];
        }
    return NULL;
}

int record_end_blocking(struct mpilab_record *record, int error)
{
    record_end(record, error);
    record->done_ns = record->end_ns;
    return error;
}

static void clear_tables(void)
{
    requests_clear();
    messages_clear();
    datatypes_clear();
    files_clear();
}

int mpilab_recorder_open(const char *path, MPI_Comm base, long capacity, int strict)
{
    mpilab_recorder_close();
    Dl_info object;
    if (dladdr((void *)(uintptr_t)mpilab_recorder_open, &object) == 0)
        return ENOEXEC;

    const size_t bytes = sizeof *header + (size_t)capacity * sizeof *records;
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        return errno;
    void *memory = MAP_FAILED;
    if (ftruncate(file, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int error = errno;
    /* A kernel has stdout, and through it could write to any open descriptor. */
    close(file);
    if (memory == MAP_FAILED)
        return error;
    snprintf(file_path, sizeof file_path, "%s", path);

#ifdef MADV_POPULATE_WRITE
    /* Create the pages of the first records in advance: a page fault costs more than a record. If
     * the system cannot, they are created on first access. */
    (void)madvise(memory, bytes < PREPARED_BYTES ? bytes : PREPARED_BYTES, MADV_POPULATE_WRITE);
#endif

    struct mpilab_header *fresh = memory;
    fresh->header_bytes = sizeof *header;
    fresh->record_bytes = sizeof *records;
    fresh->capacity = capacity;
    fresh->current = MPILAB_NONE;
    fresh->strict = strict;
    fresh->pid = getpid();
    fresh->opened_ns = record_clock();
    PMPI_Comm_rank(base, &fresh->rank);
    PMPI_Comm_size(base, &fresh->size);
    snprintf(fresh->object, sizeof fresh->object, "%s", object.dli_fname);
    gethostname(fresh->host, sizeof fresh->host - 1);

    load_address = (uintptr_t)object.dli_fbase;
    records = (struct mpilab_record *)(fresh + 1);
    mapped_bytes = bytes;
    depth = 0;
    clear_tables();
    recorder_places_open();
    if (communicators_open(base) != MPI_SUCCESS || recorder_errors_open(base) != MPI_SUCCESS) {
        communicators_close();
        munmap(memory, bytes);
        return EINVAL;
    }
    header = fresh;
    is_on = 1;
    recorder_failures_open();
    /* The magic comes last: a reader that sees it sees a complete header, and may ask for
     * samples. */
    memcpy(fresh->magic, MPILAB_MAGIC, sizeof fresh->magic);
    return 0;
}

void mpilab_recorder_pause(int is_paused)
{
    if (is_on)
        header->closed_ns = is_paused ? record_clock() : 0;
}

void mpilab_recorder_finish(void)
{
    if (!is_on)
        return;
    memory_finish();
    is_on = 0;
    header->current = MPILAB_NONE;
    requests_mark_leaks();
    communicators_mark_leaks();
    datatypes_mark_leaks();
    files_mark_leaks();
    recorder_errors_leave_base();
    header->closed_ns = record_clock();
}

void recorder_resume(void)
{
    if (header == NULL || is_on)
        return;
    header->closed_ns = 0;
    is_on = 1;
}

void mpilab_recorder_close(void)
{
    if (header == NULL)
        return;
    mpilab_recorder_finish();
    recorder_failures_close();
    recorder_errors_close();
    leftovers_record(header->opened_ns);
    header->ended_ns = record_clock();
    /* Release unused space. A failure to shorten the file is not an error, because its header says
     * how many records there are. */
    const off_t used = (off_t)(sizeof *header + (size_t)header->count * sizeof *records);
    const int shortened = truncate(file_path, used);
    (void)shortened;
    void *memory = header;
    header = NULL;
    records = NULL;
    communicators_close();
    clear_tables();
    munmap(memory, mapped_bytes);
}
