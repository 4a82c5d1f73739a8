/* The file of a recording: open, one record a call, close. */
#define _GNU_SOURCE
#include "recorder.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct mpilab_record) == 96, "recording.py relies on the layout");
_Static_assert(sizeof(struct mpilab_header) == 1456, "recording.py relies on the layout");

static struct mpilab_header *header;
static struct mpilab_record *records;
static size_t mapped_bytes;
static int file_descriptor = -1;
static uintptr_t load_address;

/* A loop may poll at this many places and still keep one record for each. */
enum { POLLS_IN_A_LOOP = 8 };

/* Where a record goes that does not fit into the file: the call is done all the same. */
static struct mpilab_record overflow;
/* Where calls go while nothing is recorded. */
static struct mpilab_record nowhere;

int64_t record_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int recorder_is_on(void)
{
    return header != NULL;
}

int recorder_is_strict(void)
{
    return header != NULL && header->strict;
}

void record_progress(void)
{
    if (header != NULL)
        header->progress++;
}

int record_index(const struct mpilab_record *record)
{
    return record == &overflow || record == &nowhere ? MPILAB_NONE : (int)(record - records);
}

struct mpilab_record *record_at(int index)
{
    return header == NULL || index == MPILAB_NONE ? &overflow : &records[index];
}

struct mpilab_record *record_begin(enum mpilab_operation operation, int flags, MPI_Comm comm,
                                   uintptr_t site)
{
    if (header == NULL)
        return &nowhere;
    struct mpilab_record *record = &overflow;
    if (header->count < header->capacity)
        record = &records[header->count];
    else
        header->dropped++;

    memset(record, 0, sizeof *record);
    record->operation = (uint16_t)operation;
    record->flags = (uint16_t)flags;
    record->communicator = communicator_number(comm);
    record->peer = record->tag = record->got_peer = record->got_tag = MPILAB_NONE;
    record->waiter = MPILAB_NONE;
    record->site = site - load_address;
    record->begin_ns = record_clock();
    header->progress++;
    if (record != &overflow) {
        header->current = header->count;
        header->count++;
    }
    return record;
}

int record_end(struct mpilab_record *record, int error)
{
    if (header == NULL || record == &nowhere)
        return error;
    record->error = error;
    record->end_ns = record_clock();
    header->current = MPILAB_NONE;
    /* A rank that asks again and again gets nowhere. */
    if (!((record->flags & MPILAB_POLLS) && record->count > 1))
        header->progress++;
    return error;
}

struct mpilab_record *record_repeated_poll(enum mpilab_operation operation, uintptr_t site)
{
    if (header == NULL)
        return NULL;
    const int64_t oldest = header->count > POLLS_IN_A_LOOP ? header->count - POLLS_IN_A_LOOP : 0;
    for (int64_t i = header->count - 1; i >= oldest && (records[i].flags & MPILAB_POLLS); i--)
        if (records[i].operation == operation && records[i].site == site - load_address)
            return &records[i];
    return NULL;
}

int record_end_blocking(struct mpilab_record *record, int error)
{
    record_end(record, error);
    record->done_ns = record->end_ns;
    return error;
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
    if (memory == MAP_FAILED) {
        const int error = errno;
        close(file);
        return error;
    }

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
    /* The magic comes last: a reader that sees it sees a whole header. */
    memcpy(fresh->magic, MPILAB_MAGIC, sizeof fresh->magic);

    load_address = (uintptr_t)object.dli_fbase;
    records = (struct mpilab_record *)(fresh + 1);
    mapped_bytes = bytes;
    requests_clear();
    file_descriptor = file;
    if (communicators_open(base) != MPI_SUCCESS) {
        munmap(memory, bytes);
        close(file);
        return EINVAL;
    }
    header = fresh;
    return 0;
}

void mpilab_recorder_close(void)
{
    if (header == NULL)
        return;
    header->closed_ns = record_clock();
    /* Give back the room that was not needed. A file that stays too long is no harm: its header
     * says how many records there are, so a failure to shorten it is no error. */
    const off_t used = (off_t)(sizeof *header + (size_t)header->count * sizeof *records);
    const int shortened = ftruncate(file_descriptor, used);
    (void)shortened;
    close(file_descriptor);
    file_descriptor = -1;
    void *memory = header;
    header = NULL;
    records = NULL;
    communicators_close();
    requests_clear();
    munmap(memory, mapped_bytes);
}
