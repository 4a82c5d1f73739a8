/* Requests: which record belongs to a handle.
 *
 * Open MPI returns the same handle for every operation that is complete at once, so a handle may be
 * in the table several times. Then the variable that the kernel keeps it in tells which of them is
 * meant; if the kernel has copied it, the latest is used.
 */
#include "recorder.h"
#include <stdlib.h>

static struct pending *table;
static int used, room;

void requests_clear(void)
{
    while (used > 0)
        communicator_release(table[--used].members);
    free(table);
    table = NULL;
    used = room = 0;
}

void requests_mark_leaks(void)
{
    for (int i = 0; i < used; i++) {
        record_mark_leak(table[i].record);
        record_mark_leak(table[i].maker);
    }
}

struct pending *request_append(const MPI_Request *request, MPI_Comm comm)
{
    if (used == room) {
        const int larger = room == 0 ? 64 : 2 * room;
        struct pending *moved = realloc(table, (size_t)larger * sizeof *table);
        if (moved == NULL)
            return NULL;
        table = moved;
        room = larger;
    }
    struct pending *entry = &table[used++];
    entry->handle = *request;
    entry->variable = request;
    entry->members = communicator_hold(comm);
    entry->record = entry->maker = MPILAB_NONE;
    entry->persistent = entry->is_cancelled = 0;
    entry->sent_bytes = 0;
    return entry;
}

/* FNV-1a, 64 bits (draft-eastlake-fnv-17). */
static uint64_t checksum_of(const struct pending *entry)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < entry->sent_bytes; i++)
        sum = (sum ^ entry->sent[i]) * 0x100000001b3;
    return sum;
}

void request_sends(struct pending *entry, const void *buffer, int count, MPI_Datatype datatype,
                   int dest)
{
    if (!recorder_is_strict() || count <= 0 || dest == MPI_PROC_NULL)
        return;
    const int64_t bytes = dense_bytes(count, datatype);
    if (bytes == 0)
        return;
    entry->sent = buffer;
    entry->sent_bytes = (size_t)bytes;
}

void request_started(struct pending *entry)
{
    entry->checksum = checksum_of(entry);
}

struct pending *request_find(MPI_Request handle, const MPI_Request *variable)
{
    struct pending *found = NULL;
    for (int i = used - 1; handle != MPI_REQUEST_NULL && i >= 0; i--) {
        if (table[i].handle != handle)
            continue;
        if (table[i].variable == variable)
            return &table[i];
        if (found == NULL)
            found = &table[i];
    }
    return found;
}

static void drop(struct pending *entry)
{
    record_unmark_leak(entry->record);
    record_unmark_leak(entry->maker);
    communicator_release(entry->members);
    *entry = table[--used];
}

void requests_forget(int count, const MPI_Request *requests)
{
    for (int i = 0; used > 0 && requests != NULL && i < count; i++) {
        struct pending *entry = request_find(requests[i], &requests[i]);
        if (entry == NULL)
            continue;
        if (entry->persistent)
            record_unmark_leak(entry->record); /* complete, and still to be freed */
        else
            drop(entry);
    }
}

int record_end_start(struct mpilab_record *record, MPI_Comm comm, const MPI_Request *request,
                     int error)
{
    if (request == NULL)
        record->flags |= MPILAB_NULL_REQUESTS;
    else if (error == MPI_SUCCESS && record_index(record) != MPILAB_NONE) {
        struct pending *entry = request_append(request, comm);
        if (entry != NULL)
            entry->record = record_index(record);
    }
    return record_end(record, error);
}

void request_completed(struct pending *entry, const MPI_Status *status, int error_class)
{
    struct mpilab_record *record = record_at(entry->record);
    record->error = error_class;
    int cancelled = 0;
    if (error_class == MPI_SUCCESS)
        PMPI_Test_cancelled(status, &cancelled);
    if (cancelled)
        record->flags |= MPILAB_CANCELLED;
    if (!cancelled && entry->sent_bytes > 0 && checksum_of(entry) != entry->checksum)
        record->flags |= MPILAB_CHANGED;
    /* For a message that was too long, the source and the length are known. */
    if (record->flags & MPILAB_RECEIVES &&
        (error_class == MPI_SUCCESS || error_class == MPI_ERR_TRUNCATE))
        record_received(record, entry->members, status);
    if (record->flags & (MPILAB_READS_FILE | MPILAB_WRITES_FILE) && error_class == MPI_SUCCESS)
        record->got_bytes = status_bytes(status);
    record->done_ns = record_clock();
    record_progress();
    if (entry->persistent)
        entry->record = MPILAB_NONE;
    else
        drop(entry);
}

int MPI_Cancel(MPI_Request *request)
{
    struct mpilab_record *record = record_begin(MPILAB_Cancel, 0, MPI_COMM_NULL, CALL_SITE);
    struct pending *entry = request == NULL ? NULL : request_find(*request, request);
    const int err = PMPI_Cancel(request);
    if (entry != NULL && err == MPI_SUCCESS)
        entry->is_cancelled = 1;
    return record_end(record, err);
}

int MPI_Request_free(MPI_Request *request)
{
    struct mpilab_record *record = record_begin(MPILAB_Request_free, 0, MPI_COMM_NULL, CALL_SITE);
    const MPI_Request handle = request == NULL ? MPI_REQUEST_NULL : *request;
    const int err = PMPI_Request_free(request);
    struct pending *entry = err == MPI_SUCCESS ? request_find(handle, request) : NULL;
    if (entry != NULL) {
        /* If it is under way, the kernel will not know when it has completed. */
        const int record_under_way = entry->is_cancelled ? MPILAB_NONE : entry->record;
        drop(entry);
        record_mark_leak(record_under_way);
    }
    return record_end(record, err);
}
