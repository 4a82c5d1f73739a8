/* The evidence file of one rank (access.h): created before a kernel is called; each call fills an
 * entry. It is memory-mapped, so it is complete even after a crash. */
#define _GNU_SOURCE
#include "access.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* How many requests of all calls of a case fit into the file; the rest are only counted. The file
 * is sparse: unused space costs nothing. */
enum { ACCESS_CAPACITY = 1 << 18 };

_Static_assert(sizeof(struct access_header) == 72, "fileaccess.py relies on the layout");
_Static_assert(sizeof(struct access_call) == 96, "fileaccess.py relies on the layout");
_Static_assert(sizeof(struct access_record) == 64, "fileaccess.py relies on the layout");

struct access {
    const struct subject *subject;
    int descriptor; /* of the matrix file, for queries about it */
    int file;       /* the evidence file */
    size_t mapped_bytes;
    struct access_header *header;
    struct access_call *calls, *current;
    struct process_io before;
};

/* Map a new file of this many zero bytes into memory; NULL with errno if that fails. */
static void *map_new(int file, size_t bytes)
{
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        return NULL;
    void *const mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

int open_access(struct access **access, const struct subject *subject, const char *matrix_path,
                const char *path)
{
    const struct mpilab_case *order = subject->order;
    struct stat about;
    struct access *made = calloc(1, sizeof *made);
    *access = made;
    if (made == NULL)
        return harness_fail("out of memory: the evidence of file access");
    made->file = made->descriptor = -1;
    made->subject = subject;
    made->descriptor = open(matrix_path, O_RDONLY | O_CLOEXEC);
    if (made->descriptor < 0 || fstat(made->descriptor, &about) != 0)
        return harness_fail("%s: %s", matrix_path, strerror(errno));
    made->mapped_bytes = sizeof *made->header + (size_t)order->repetitions * sizeof *made->calls +
                         ACCESS_CAPACITY * sizeof(struct access_record);
    made->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    made->header = map_new(made->file, made->mapped_bytes);
    if (made->header == NULL)
        return harness_fail("%s: %s", path, strerror(errno));
    made->calls = (struct access_call *)(made->header + 1);
    *made->header = (struct access_header){
        .header_bytes = sizeof *made->header,
        .call_bytes = sizeof *made->calls,
        .record_bytes = sizeof(struct access_record),
        .rank = subject->rank,
        .seen = REQUESTS_NOT_ASKED,
        .calls = (int32_t)order->repetitions,
        .capacity = ACCESS_CAPACITY,
        .filesystem = filesystem_of(made->descriptor),
        .file_bytes = about.st_size,
    };
    if (order->requests)
        made->header->seen =
            watch_requests(made->descriptor, made->header,
                           (struct access_record *)(made->calls + order->repetitions));
    memcpy(made->header->magic, MPILAB_ACCESS_MAGIC, sizeof made->header->magic);
    return 0;
}

/* No rank reads before all have evicted the file from their host's page cache. */
static int cool(const struct access *access)
{
    /* Pages that are not on the disk yet cannot be evicted; rank 0 has written the file. */
    int failed = 0;
    if (access->subject->rank == 0 && fsync(access->descriptor) != 0)
        failed = harness_fail("the matrix cannot be brought to the disk: %s", strerror(errno));
    if (fail_together(access->subject->parent, failed) != 0)
        return 1;
    forget_pages(access->descriptor);
    MPI_Barrier(access->subject->parent);
    return 0;
}

int prepare_access(struct access *access, int call)
{
    if (access->subject->order->cold && cool(access) != 0)
        return 1;
    if (call < 0) /* a warm-up call is not recorded */
        return 0;
    struct access_call *const entry = access->current = &access->calls[call];
    entry->resident_before = resident_bytes(access->descriptor, access->header->file_bytes);
    entry->memory_before = begin_memory_peak();
    return 0;
}

void begin_access(struct access *access)
{
    struct access_call *const entry = access->current;
    if (entry == NULL)
        return;
    access->before = process_io();
    if (access->header->seen == REQUESTS_SEEN)
        begin_requests(entry, (int)(entry - access->calls));
    entry->begin_ns = clock_ns();
}

void end_access(struct access *access)
{
    struct access_call *const entry = access->current;
    if (entry == NULL)
        return;
    entry->end_ns = clock_ns();
    end_requests();
    const struct process_io before = access->before, after = process_io();
    const int is_known = before.syscr != UNKNOWN && after.syscr != UNKNOWN;
    entry->rchar = is_known ? after.rchar - before.rchar - before.own_bytes : UNKNOWN;
    entry->syscr = is_known ? after.syscr - before.syscr - 1 : UNKNOWN;
    entry->read_bytes = is_known ? after.read_bytes - before.read_bytes : UNKNOWN;
    entry->memory_peak = entry->memory_before == UNKNOWN ? UNKNOWN : memory_peak();
    access->current = NULL;
}

int close_access(struct access *access)
{
    int failed = 0;
    if (access == NULL)
        return 0;
    end_requests();
    if (access->header != NULL) {
        const struct access_header *header = access->header;
        const size_t used = sizeof *header + (size_t)header->calls * sizeof *access->calls +
                            (size_t)header->count * sizeof(struct access_record);
        failed = ftruncate(access->file, (off_t)used) != 0 &&
                 harness_fail("the evidence of file access cannot be cut: %s", strerror(errno));
        munmap(access->header, access->mapped_bytes);
    }
    if (access->file >= 0)
        close(access->file);
    if (access->descriptor >= 0)
        close(access->descriptor);
    free(access);
    return failed;
}
