/* Persistent requests. Each start is a separate message; its arguments were given when the request
 * was made. */
#include "recorder.h"

static struct mpilab_record *begin(enum mpilab_operation operation, int flags, int count,
                                   MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
                                   uintptr_t site)
{
    struct mpilab_record *record =
        transfer_begin(operation, flags, count, datatype, peer, tag, comm, site);
    /* No message yet: each start sends or receives one. */
    record->flags &= (uint16_t)~(MPILAB_SENDS | MPILAB_RECEIVES);
    return record;
}

static int end(struct mpilab_record *record, int flags, MPI_Comm comm, const MPI_Request *request,
               const void *buffer, int count, MPI_Datatype datatype, int peer, int err)
{
    if (request == NULL)
        record->flags |= MPILAB_NULL_REQUESTS;
    struct pending *entry =
        err == MPI_SUCCESS && recorder_is_on() ? request_append(request, comm) : NULL;
    if (entry != NULL) {
        entry->persistent = 1;
        entry->maker = record_index(record);
        entry->prototype = *record;
        entry->prototype.flags = (uint16_t)(flags | MPILAB_NONBLOCKING);
        if (flags & MPILAB_SENDS)
            request_sends(entry, buffer, count, datatype, peer);
    }
    return record_end_blocking(record, err);
}

#define PERSISTENT(name, buffer_type, real, the_flags)                                      \
    int MPI_##name(buffer_type buffer, int count, MPI_Datatype datatype, int peer, int tag, \
                   MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                       \
        const int flags = the_flags;                                                        \
        struct mpilab_record *record =                                                      \
            begin(MPILAB_##name, flags, count, datatype, peer, tag, comm, CALL_SITE);       \
        return end(record, flags, comm, request, buffer, count, datatype, peer,             \
                   real(buffer, count, datatype, peer, tag, comm, request));                \
    }

PERSISTENT(Send_init, const void *, (recorder_is_strict() ? PMPI_Ssend_init : PMPI_Send_init),
           MPILAB_SENDS | (recorder_is_strict() ? MPILAB_SYNCHRONOUS : 0))
PERSISTENT(Ssend_init, const void *, PMPI_Ssend_init, MPILAB_SENDS | MPILAB_SYNCHRONOUS)
PERSISTENT(Recv_init, void *, PMPI_Recv_init, MPILAB_RECEIVES)

static struct mpilab_record *start_one(enum mpilab_operation operation, const MPI_Request *request,
                                       uintptr_t site)
{
    struct pending *entry = request == NULL ? NULL : request_find(*request, request);
    /* Its communicator may have been freed. */
    struct mpilab_record *record = record_begin(operation, 0, MPI_COMM_NULL, site);
    if (entry != NULL && entry->persistent) {
        record->flags = entry->prototype.flags;
        record->communicator = entry->prototype.communicator;
        record->peer = entry->prototype.peer;
        record->tag = entry->prototype.tag;
        record->count = entry->prototype.count;
        record->bytes = entry->prototype.bytes;
        entry->record = record_index(record);
        request_started(entry);
    } else {
        record->flags |= MPILAB_UNKNOWN_REQUEST;
    }
    if (request == NULL)
        record->flags |= MPILAB_NULL_REQUESTS;
    return record;
}

int MPI_Start(MPI_Request *request)
{
    if (!recorder_is_on())
        return PMPI_Start(request);
    struct mpilab_record *record = start_one(MPILAB_Start, request, CALL_SITE);
    return record_end(record, PMPI_Start(request));
}

int MPI_Startall(int count, MPI_Request requests[])
{
    if (!recorder_is_on())
        return PMPI_Startall(count, requests);
    int err = MPI_SUCCESS;
    for (int i = 0; i < count && err == MPI_SUCCESS; i++) {
        struct mpilab_record *record = start_one(MPILAB_Startall, &requests[i], CALL_SITE);
        err = record_end(record, PMPI_Start(&requests[i]));
    }
    return err;
}
