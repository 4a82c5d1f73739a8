/* The calls that wait for requests or test them. */
#include "recorder.h"
#include <stdlib.h>
#include <string.h>

/* What a wait or test needs: the handles as they were before the call (MPI overwrites them) and our
 * own statuses if the caller ignores them. */
struct watch {
    struct mpilab_record *record;
    int count;
    const MPI_Request *variables;
    MPI_Request *before;
    MPI_Status *statuses;
    MPI_Request few_requests[32];
    MPI_Status few_statuses[32];
};

static void watch_begin(struct watch *watch, enum mpilab_operation operation, int flags, int count,
                        const MPI_Request *requests, MPI_Status *statuses, uintptr_t site)
{
    struct mpilab_record *again =
        flags & MPILAB_POLLS ? record_repeated_poll(operation, site) : NULL;
    watch->record = again != NULL ? again : record_begin(operation, flags, MPI_COMM_NULL, site);
    if (flags & MPILAB_WAITS)
        watch->record->count = count;

    if (requests == NULL && count > 0)
        watch->record->flags |= MPILAB_NULL_REQUESTS;
    watch->count = requests != NULL && count > 0 ? count : 0;
    watch->variables = requests;
    watch->before = watch->few_requests;
    watch->statuses = statuses == MPI_STATUSES_IGNORE ? watch->few_statuses : statuses;
    if (watch->count > 32) {
        watch->before = malloc((size_t)count * sizeof *watch->before);
        if (statuses == MPI_STATUSES_IGNORE)
            watch->statuses = malloc((size_t)count * sizeof *watch->statuses);
        if (watch->before == NULL || watch->statuses == NULL) {
            /* Without memory, the requests cannot be followed; the call itself needs none. */
            free(watch->before);
            watch->before = watch->few_requests;
            watch->statuses = statuses;
            watch->count = 0;
        }
    }
    if (watch->count > 0)
        memcpy(watch->before, requests, (size_t)watch->count * sizeof *requests);
    for (int i = 0; i < watch->count; i++) {
        const struct pending *entry = request_find(requests[i], &requests[i]);
        if (entry == NULL && requests[i] != MPI_REQUEST_NULL)
            watch->record->flags |= MPILAB_UNKNOWN_REQUEST;
        else if (entry != NULL && entry->record != MPILAB_NONE)
            record_at(entry->record)->waiter = record_index(watch->record);
    }
}

/* May a call that returned `err` have been the end of a request? */
static int is_end(int err)
{
    const int class = recorder_error_class(err);
    return class != MPI_ERR_REQUEST && class != MPI_ERR_ARG && class != MPI_ERR_PENDING;
}

/* The request at `index` is complete. */
static void watch_done(struct watch *watch, int index, const MPI_Status *status, int err)
{
    if (index < 0 || index >= watch->count)
        return;
    struct pending *entry = request_find(watch->before[index], &watch->variables[index]);
    if (entry != NULL && entry->record != MPILAB_NONE)
        request_completed(entry, status, recorder_error_class(err));
}

/* All requests of a call are complete: those at `indices`, or the first `count` if that is NULL. If
 * the call returned MPI_ERR_IN_STATUS, every status has the error of its own request. */
static void watch_all_done(struct watch *watch, int count, const int indices[], int err)
{
    const int in_status = recorder_error_class(err) == MPI_ERR_IN_STATUS;
    if (err != MPI_SUCCESS && !in_status)
        return;
    for (int i = 0; i < count && i < watch->count; i++) {
        const MPI_Status *status = &watch->statuses[i];
        const int own_err = in_status ? status->MPI_ERROR : MPI_SUCCESS;
        if (is_end(own_err))
            watch_done(watch, indices == NULL ? i : indices[i], status, own_err);
    }
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
    if (!recorder_is_on()) {
        requests_forget(1, request);
        return PMPI_Wait(request, status);
    }
    struct watch watch;
    watch_begin(&watch, MPILAB_Wait, MPILAB_WAITS, 1, request, MPI_STATUSES_IGNORE, CALL_SITE);
    MPI_Status *own = status == MPI_STATUS_IGNORE ? &watch.few_statuses[0] : status;
    const int err = PMPI_Wait(request, own);
    if (is_end(err))
        watch_done(&watch, 0, own, err);
    return watch_end(&watch, 1, MPI_STATUSES_IGNORE, err);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    if (!recorder_is_on()) {
        requests_forget(count, requests);
        return PMPI_Waitall(count, requests, statuses);
    }
    struct watch watch;
    watch_begin(&watch, MPILAB_Waitall, MPILAB_WAITS, count, requests, statuses, CALL_SITE);
    const int err = PMPI_Waitall(count, requests, watch.statuses);
    watch_all_done(&watch, count, NULL, err);
    return watch_end(&watch, 1, statuses, err);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    if (!recorder_is_on())
        return PMPI_Waitany(count, requests, index, status);
    struct watch watch;
    watch_begin(&watch, MPILAB_Waitany, MPILAB_WAITS, count, requests, MPI_STATUSES_IGNORE,
                CALL_SITE);
    MPI_Status own;
    const int err = PMPI_Waitany(count, requests, index, &own);
    if (is_end(err)) {
        watch_done(&watch, *index, &own, err);
        if (status != MPI_STATUS_IGNORE)
            *status = own;
    }
    return watch_end(&watch, 1, MPI_STATUSES_IGNORE, err);
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    if (!recorder_is_on())
        return PMPI_Waitsome(count, requests, done, indices, statuses);
    struct watch watch;
    watch_begin(&watch, MPILAB_Waitsome, MPILAB_WAITS, count, requests, statuses, CALL_SITE);
    const int err = PMPI_Waitsome(count, requests, done, indices, watch.statuses);
    if (is_end(err) && *done != MPI_UNDEFINED)
        watch_all_done(&watch, *done, indices, err);
    return watch_end(&watch, 1, statuses, err);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    /* A loop over requests also tests completed ones, which tells nothing new. */
    if (!recorder_is_on() || (request != NULL && *request == MPI_REQUEST_NULL))
        return PMPI_Test(request, flag, status);
    struct watch watch;
    watch_begin(&watch, MPILAB_Test, MPILAB_POLLS, 1, request, MPI_STATUSES_IGNORE, CALL_SITE);
    MPI_Status *own = status == MPI_STATUS_IGNORE ? &watch.few_statuses[0] : status;
    const int err = PMPI_Test(request, flag, own);
    if (is_end(err) && (err != MPI_SUCCESS || *flag))
        watch_done(&watch, 0, own, err);
    return watch_end(&watch, err != MPI_SUCCESS || *flag, MPI_STATUSES_IGNORE, err);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    if (!recorder_is_on())
        return PMPI_Testall(count, requests, flag, statuses);
    struct watch watch;
    watch_begin(&watch, MPILAB_Testall, MPILAB_POLLS, count, requests, statuses, CALL_SITE);
    const int err = PMPI_Testall(count, requests, flag, watch.statuses);
    const int answered = err != MPI_SUCCESS || *flag;
    if (answered)
        watch_all_done(&watch, count, NULL, err);
    for (int i = 0; !answered && i < watch.count; i++) /* SMPI completes them one by one */
        if (watch.before[i] != MPI_REQUEST_NULL && requests[i] == MPI_REQUEST_NULL)
            watch_done(&watch, i, &watch.statuses[i], MPI_SUCCESS);
    return watch_end(&watch, answered, statuses, err);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    if (!recorder_is_on())
        return PMPI_Testany(count, requests, index, flag, status);
    struct watch watch;
    watch_begin(&watch, MPILAB_Testany, MPILAB_POLLS, count, requests, MPI_STATUSES_IGNORE,
                CALL_SITE);
    MPI_Status own;
    const int err = PMPI_Testany(count, requests, index, flag, &own);
    const int answered = err != MPI_SUCCESS || *flag;
    if (answered && is_end(err)) {
        watch_done(&watch, *index, &own, err);
        if (status != MPI_STATUS_IGNORE)
            *status = own;
    }
    return watch_end(&watch, answered, MPI_STATUSES_IGNORE, err);
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    if (!recorder_is_on())
        return PMPI_Testsome(count, requests, done, indices, statuses);
    struct watch watch;
    watch_begin(&watch, MPILAB_Testsome, MPILAB_POLLS, count, requests, statuses, CALL_SITE);
    const int err = PMPI_Testsome(count, requests, done, indices, watch.statuses);
    const int answered = err != MPI_SUCCESS || *done != 0;
    if (answered && is_end(err) && *done != MPI_UNDEFINED)
        watch_all_done(&watch, *done, indices, err);
    return watch_end(&watch, answered, statuses, err);
}
