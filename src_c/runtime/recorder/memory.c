/* Snapshots: the contents of a piece of memory (the receive buffer) after each call that changed
 * it.
 *
 * The file is memory-mapped and complete at every moment, like the recording itself: a header of
 * four 64-bit words (magic, bytes of a snapshot, snapshots that fit, snapshots), then for each
 * snapshot the record that had just ended (or MPILAB_AT_START, MPILAB_AT_FINISH), a reserved word,
 * and the memory, padded to whole words. mpilab/trace/snapshots.py reads it.
 */
#define _GNU_SOURCE
#include "memory.h"
#include "recorder.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SNAPSHOTS = 1024, MPILAB_AT_START = -1, MPILAB_AT_FINISH = -2 };

struct snapshots {
    char magic[8];
    int64_t bytes, capacity, count;
};

struct snapshot {
    int64_t record, reserved;
    unsigned char memory[];
};

int memory_is_watched;

static const void *watched;
static struct snapshots *snapshots;
static size_t mapped_bytes;
static char file_path[PATH_MAX];

static size_t snapshot_bytes(int64_t bytes)
{
    return sizeof(struct snapshot) + (((size_t)bytes + 7) & ~(size_t)7);
}

static struct snapshot *snapshot_at(int64_t index)
{
    return (struct snapshot *)((char *)(snapshots + 1) +
                               (size_t)index * snapshot_bytes(snapshots->bytes));
}

static void take(int64_t record)
{
    struct snapshot *snapshot = snapshot_at(snapshots->count);
    snapshot->record = record;
    memcpy(snapshot->memory, watched, (size_t)snapshots->bytes);
    /* Counted last: a reader never sees half a snapshot. */
    __atomic_store_n(&snapshots->count, snapshots->count + 1, __ATOMIC_RELEASE);
}

void memory_look(int record)
{
    /* The last slot is reserved for the end. */
    if (record == MPILAB_NONE || snapshots->count >= snapshots->capacity - 1)
        return;
    const void *last = snapshot_at(snapshots->count - 1)->memory;
    if (memcmp(last, watched, (size_t)snapshots->bytes) != 0)
        take(record);
}

void mpilab_recorder_watch(const void *memory, long bytes, const char *path)
{
    memory_finish();
    const size_t total = sizeof *snapshots + SNAPSHOTS * snapshot_bytes(bytes);
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        return;
    void *mapped = MAP_FAILED;
    if (ftruncate(file, (off_t)total) == 0)
        mapped = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file); /* a kernel could write to it: see recorder.c */
    if (mapped == MAP_FAILED)
        return;
    snprintf(file_path, sizeof file_path, "%s", path);
    mapped_bytes = total;
    watched = memory;
    snapshots = mapped;
    snapshots->bytes = bytes;
    snapshots->capacity = SNAPSHOTS;
    take(MPILAB_AT_START);
    memcpy(snapshots->magic, "MPILABM1", sizeof snapshots->magic);
    memory_is_watched = 1;
}

void memory_finish(void)
{
    if (!memory_is_watched)
        return;
    memory_is_watched = 0;
    take(MPILAB_AT_FINISH);
    const size_t used =
        sizeof *snapshots + (size_t)snapshots->count * snapshot_bytes(snapshots->bytes);
    const int shortened = truncate(file_path, (off_t)used);
    (void)shortened; /* the header says how many there are */
    munmap(snapshots, mapped_bytes);
    snapshots = NULL;
}
