/* Requests: which record belongs to a handle, and the calls that wait for requests or test them.
 *
 * Open MPI hands out one and the same handle for every operation that is complete at once, so a
 * handle may stand in the table several times; those are alike, and any of them will do.
 */
#include "recorder.h"
#include <stdlib.h>
#include <string.h>

/* A persistent request (MPI_Send_init ...) keeps what it will do each time it is started. */
struct pending {
    MPI_Request handle;
    MPI_Comm comm;
    int record; /* index, or MPILAB_NONE while a persistent request is not started */
    int persistent;
    struct mpilab_record prototype;
};

static struct pending *table;
static int used, room;

void requests_clear(void)
{
    free(table);
    table = NULL;
    used = room = 0;
}

static struct pending *append(MPI_Request handle, MPI_Comm comm)
{
    if (used == room) {
        const int larger = room == 0 ? 64 : 2 * room;
        struct pending *moved = realloc(table, (size_t)larger * sizeof *table);
        if (moved == NULL)
            return NULL;
        table = moved;
        room = larger;
    }
    table[used] = (struct pending){.handle = handle, .comm = comm, .record = MPILAB_NONE};
    return &table[used++];
}

/* The latest entry of a handle: waits mostly ask for what was started last. */
static struct pending *find(MPI_Request handle)
{
    if (handle == MPI_REQUEST_NULL)
        return NULL;
    for (int i = used - 1; i >= 0; i--)
        if (table[i].handle == handle)
            return &table[i];
    return NULL;
}

static void drop(struct pending *entry)
{
    *entry = table[--used];
}

static int requests_add(MPI_Request handle, struct mpilab_record *record, MPI_Comm comm)
{
    if (!recorder_is_on() || record_index(record) == MPILAB_NONE)
        return 0;
    struct pending *entry = append(handle, comm);
    if (entry != NULL)
        entry->record = record_index(record);
    return entry != NULL;
}

int record_end_start(struct mpilab_record *record, MPI_Comm comm, const MPI_Request *request,
                     int error)
{
    if (error == MPI_SUCCESS)
        requests_add(*request, record, comm);
    return record_end(record, error);
}

static void completed(struct pending *entry, const MPI_Status *status)
{
    struct mpilab_record *record = record_at(entry->record);
    if (record->flags & MPILAB_RECEIVES)
        record_received(record, entry->comm, status);
    int cancelled = 0;
    PMPI_Test_cancelled(status, &cancelled);
    if (cancelled)
        record->flags |= MPILAB_CANCELLED;
    record->done_ns = record_clock();
    record_progress();
    if (entry->persistent)
        entry->record = MPILAB_NONE;
    else
        drop(entry);
}

/* What a wait or test needs: the handles as they were before the call (MPI overwrites them) and
 * statuses of our own where the caller ignores them. */
struct watch {
    struct mpilab_record *record;
    int count;
    MPI_Request *before;
    MPI_Status *statuses;
    MPI_Request few_requests[32];
    MPI_Status few_statuses[32];
};

static int watch_begin(struct watch *watch, enum mpilab_operation operation, int flags, int count,
                       const MPI_Request *requests, MPI_Status *statuses, uintptr_t site)
{
    watch->count = count;
    watch->before = watch->few_requests;
    watch->statuses = statuses;
    if (count > 32) {
        watch->before = malloc((size_t)count * sizeof *watch->before);
        if (watch->before == NULL)
            return 0;
    }
    if (count > 0)
        memcpy(watch->before, requests, (size_t)count * sizeof *requests);
    if (statuses == MPI_STATUSES_IGNORE) {
        watch->statuses = watch->few_statuses;
        if (count > 32)
            watch->statuses = malloc((size_t)count * sizeof *watch->statuses);
        if (watch->statuses == NULL) {
            free(watch->before);
            return 0;
        }
    }
    struct mpilab_record *again =
        flags & MPILAB_POLLS ? record_repeated_poll(operation, site) : NULL;
    watch->record = again != NULL ? again : record_begin(operation, flags, MPI_COMM_NULL, site);
    if (flags & MPILAB_WAITS)
        watch->record->count = count;
    for (int i = 0; i < count; i++) {
        const struct pending *entry = find(requests[i]);
        if (entry != NULL && entry->record != MPILAB_NONE)
            record_at(entry->record)->waiter = record_index(watch->record);
    }
    return 1;
}

static void watch_done(struct watch *watch, int index, const MPI_Status *status)
{
    struct pending *entry = find(watch->before[index]);
    if (entry != NULL && entry->record != MPILAB_NONE)
        completed(entry, status);
}

/* A poll that found nothing is counted, and stays "the same poll" for the next one. */
static int watch_end(struct watch *watch, int answered, MPI_Status *statuses, int err)
{
    struct mpilab_record *record = watch->record;
    if (record->flags & MPILAB_POLLS) {
        record->count++;
        if (answered)
            record->flags &= (uint16_t)~MPILAB_POLLS;
    }
    if (watch->before != watch->few_requests)
        free(watch->before);
    if (watch->statuses != statuses && watch->statuses != watch->few_statuses)
        free(watch->statuses);
    return record_end(record, err);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct watch watch;
    if (!recorder_is_on() ||
        !watch_begin(&watch, MPILAB_Wait, MPILAB_WAITS, 1, request, MPI_STATUSES_IGNORE, CALL_SITE))
        return PMPI_Wait(request, status);
    MPI_Status *own = status == MPI_STATUS_IGNORE ? &watch.few_statuses[0] : status;
    const int err = PMPI_Wait(request, own);
    if (err == MPI_SUCCESS)
        watch_done(&watch, 0, own);
    return watch_end(&watch, 1, MPI_STATUSES_IGNORE, err);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct watch watch;
    if (!recorder_is_on() ||
        !watch_begin(&watch, MPILAB_Waitall, MPILAB_WAITS, count, requests, statuses, CALL_SITE))
        return PMPI_Waitall(count, requests, statuses);
    const int err = PMPI_Waitall(count, requests, watch.statuses);
    for (int i = 0; i < count; i++)
        if (err == MPI_SUCCESS ||
            (err == MPI_ERR_IN_STATUS && watch.statuses[i].MPI_ERROR == MPI_SUCCESS))
            watch_done(&watch, i, &watch.statuses[i]);
    return watch_end(&watch, 1, statuses, err);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct watch watch;
    if (!recorder_is_on() || !watch_begin(&watch, MPILAB_Waitany, MPILAB_WAITS, count, requests,
                                          MPI_STATUSES_IGNORE, CALL_SITE))
        return PMPI_Waitany(count, requests, index, status);
    MPI_Status own;
    const int err = PMPI_Waitany(count, requests, index, &own);
    if (err == MPI_SUCCESS && *index != MPI_UNDEFINED)
        watch_done(&watch, *index, &own);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    return watch_end(&watch, 1, MPI_STATUSES_IGNORE, err);
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    struct watch watch;
    if (!recorder_is_on() ||
        !watch_begin(&watch, MPILAB_Waitsome, MPILAB_WAITS, count, requests, statuses, CALL_SITE))
        return PMPI_Waitsome(count, requests, done, indices, statuses);
    const int err = PMPI_Waitsome(count, requests, done, indices, watch.statuses);
    for (int i = 0; err == MPI_SUCCESS && *done != MPI_UNDEFINED && i < *done; i++)
        watch_done(&watch, indices[i], &watch.statuses[i]);
    return watch_end(&watch, 1, statuses, err);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct watch watch;
    /* A loop over requests also tests those that are done: an answer, but no news. */
    if (!recorder_is_on() || *request == MPI_REQUEST_NULL ||
        !watch_begin(&watch, MPILAB_Test, MPILAB_POLLS, 1, request, MPI_STATUSES_IGNORE, CALL_SITE))
        return PMPI_Test(request, flag, status);
    MPI_Status *own = status == MPI_STATUS_IGNORE ? &watch.few_statuses[0] : status;
    const int err = PMPI_Test(request, flag, own);
    if (err == MPI_SUCCESS && *flag)
        watch_done(&watch, 0, own);
    return watch_end(&watch, err != MPI_SUCCESS || *flag, MPI_STATUSES_IGNORE, err);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct watch watch;
    if (!recorder_is_on() ||
        !watch_begin(&watch, MPILAB_Testall, MPILAB_POLLS, count, requests, statuses, CALL_SITE))
        return PMPI_Testall(count, requests, flag, statuses);
    const int err = PMPI_Testall(count, requests, flag, watch.statuses);
    for (int i = 0; err == MPI_SUCCESS && *flag && i < count; i++)
        watch_done(&watch, i, &watch.statuses[i]);
    return watch_end(&watch, err != MPI_SUCCESS || *flag, statuses, err);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct watch watch;
    if (!recorder_is_on() || !watch_begin(&watch, MPILAB_Testany, MPILAB_POLLS, count, requests,
                                          MPI_STATUSES_IGNORE, CALL_SITE))
        return PMPI_Testany(count, requests, index, flag, status);
    MPI_Status own;
    const int err = PMPI_Testany(count, requests, index, flag, &own);
    if (err == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED)
        watch_done(&watch, *index, &own);
    if (*flag && status != MPI_STATUS_IGNORE)
        *status = own;
    return watch_end(&watch, err != MPI_SUCCESS || *flag, MPI_STATUSES_IGNORE, err);
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    struct watch watch;
    if (!recorder_is_on() ||
        !watch_begin(&watch, MPILAB_Testsome, MPILAB_POLLS, count, requests, statuses, CALL_SITE))
        return PMPI_Testsome(count, requests, done, indices, statuses);
    const int err = PMPI_Testsome(count, requests, done, indices, watch.statuses);
    const int found = err == MPI_SUCCESS && *done != MPI_UNDEFINED ? *done : 0;
    for (int i = 0; i < found; i++)
        watch_done(&watch, indices[i], &watch.statuses[i]);
    return watch_end(&watch, err != MPI_SUCCESS || *done != 0, statuses, err);
}

int MPI_Cancel(MPI_Request *request)
{
    struct mpilab_record *record = record_begin(MPILAB_Cancel, 0, MPI_COMM_NULL, CALL_SITE);
    return record_end(record, PMPI_Cancel(request));
}

int MPI_Request_free(MPI_Request *request)
{
    struct mpilab_record *record = record_begin(MPILAB_Request_free, 0, MPI_COMM_NULL, CALL_SITE);
    struct pending *entry = recorder_is_on() ? find(*request) : NULL;
    if (entry != NULL)
        drop(entry);
    return record_end(record, PMPI_Request_free(request));
}

static int add_persistent(int err, MPI_Request handle, MPI_Comm comm, int flags, int peer, int tag,
                          int64_t bytes)
{
    struct pending *entry = err == MPI_SUCCESS && recorder_is_on() ? append(handle, comm) : NULL;
    if (entry != NULL) {
        entry->persistent = 1;
        entry->prototype = (struct mpilab_record){
            .flags = (uint16_t)(flags | MPILAB_NONBLOCKING),
            .peer = communicator_rank(comm, peer),
            .tag = tag == MPI_ANY_TAG ? MPILAB_ANY : tag,
            .bytes = bytes,
        };
    }
    return err;
}

int MPI_Send_init(const void *buffer, int count, MPI_Datatype datatype, int dest, int tag,
                  MPI_Comm comm, MPI_Request *request)
{
    const int strict = recorder_is_strict();
    const int err = strict ? PMPI_Ssend_init(buffer, count, datatype, dest, tag, comm, request)
                           : PMPI_Send_init(buffer, count, datatype, dest, tag, comm, request);
    return add_persistent(err, *request, comm, MPILAB_SENDS | (strict ? MPILAB_SYNCHRONOUS : 0),
                          dest, tag, typed_bytes(count, datatype));
}

int MPI_Ssend_init(const void *buffer, int count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Request *request)
{
    const int err = PMPI_Ssend_init(buffer, count, datatype, dest, tag, comm, request);
    return add_persistent(err, *request, comm, MPILAB_SENDS | MPILAB_SYNCHRONOUS, dest, tag,
                          typed_bytes(count, datatype));
}

int MPI_Recv_init(void *buffer, int count, MPI_Datatype datatype, int source, int tag,
                  MPI_Comm comm, MPI_Request *request)
{
    const int err = PMPI_Recv_init(buffer, count, datatype, source, tag, comm, request);
    return add_persistent(err, *request, comm, MPILAB_RECEIVES, source, tag,
                          typed_bytes(count, datatype));
}

static struct mpilab_record *start_one(enum mpilab_operation operation, MPI_Request handle,
                                       uintptr_t site)
{
    struct pending *entry = find(handle);
    const MPI_Comm comm = entry == NULL ? MPI_COMM_NULL : entry->comm;
    struct mpilab_record *record = record_begin(operation, 0, comm, site);
    if (entry != NULL) {
        record->flags = entry->prototype.flags;
        record->peer = entry->prototype.peer;
        record->tag = entry->prototype.tag;
        record->bytes = entry->prototype.bytes;
        entry->record = record_index(record);
    }
    return record;
}

int MPI_Start(MPI_Request *request)
{
    if (!recorder_is_on())
        return PMPI_Start(request);
    struct mpilab_record *record = start_one(MPILAB_Start, *request, CALL_SITE);
    return record_end(record, PMPI_Start(request));
}

int MPI_Startall(int count, MPI_Request requests[])
{
    if (!recorder_is_on())
        return PMPI_Startall(count, requests);
    int err = MPI_SUCCESS;
    for (int i = 0; i < count && err == MPI_SUCCESS; i++) {
        struct mpilab_record *record = start_one(MPILAB_Startall, requests[i], CALL_SITE);
        err = record_end(record, PMPI_Start(&requests[i]));
    }
    return err;
}
