/* Probes, and the receives of a message that a probe has matched.
 *
 * A matched message does not tell its communicator or its source: its probe did.
 */
#include "recorder.h"
#include <stdlib.h>

static struct matched {
    MPI_Message handle;
    MPI_Comm comm;
    int source, tag;
} *table;
static int used, room;

void messages_clear(void)
{
    free(table);
    table = NULL;
    used = room = 0;
}

static void add(MPI_Message handle, MPI_Comm comm, const MPI_Status *status)
{
    if (used == room) {
        const int larger = room == 0 ? 16 : 2 * room;
        struct matched *moved = realloc(table, (size_t)larger * sizeof *table);
        if (moved == NULL)
            return;
        table = moved;
        room = larger;
    }
    table[used++] = (struct matched){handle, comm, status->MPI_SOURCE, status->MPI_TAG};
}

/* What is known of a message that is about to be received. */
static struct matched take(const MPI_Message *message)
{
    const MPI_Message handle = message == NULL ? MPI_MESSAGE_NULL : *message;
    for (int i = used - 1; i >= 0; i--) {
        if (table[i].handle == handle) {
            const struct matched found = table[i];
            table[i] = table[--used];
            return found;
        }
    }
    const int source = handle == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : MPI_ANY_SOURCE;
    return (struct matched){handle, MPI_COMM_NULL, source, MPI_ANY_TAG};
}

static struct mpilab_record *begin_probe(enum mpilab_operation operation, int flags, int source,
                                         int tag, MPI_Comm comm, uintptr_t site)
{
    struct mpilab_record *again =
        flags & MPILAB_POLLS ? record_repeated_poll(operation, site) : NULL;
    return again != NULL
               ? again
               : transfer_begin(operation, flags, 0, MPI_DATATYPE_NULL, source, tag, comm, site);
}

static int end_poll(struct mpilab_record *record, int answered, int err)
{
    record->count++;
    if (answered)
        record->flags &= (uint16_t)~MPILAB_POLLS;
    return record_end(record, err);
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct mpilab_record *record = begin_probe(MPILAB_Probe, 0, source, tag, comm, CALL_SITE);
    return record_end(record, PMPI_Probe(source, tag, comm, status));
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    struct mpilab_record *record =
        begin_probe(MPILAB_Iprobe, MPILAB_POLLS, source, tag, comm, CALL_SITE);
    const int err = PMPI_Iprobe(source, tag, comm, flag, status);
    return end_poll(record, err != MPI_SUCCESS || *flag, err);
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    MPI_Status own;
    struct mpilab_record *record = begin_probe(MPILAB_Mprobe, 0, source, tag, comm, CALL_SITE);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const int err = PMPI_Mprobe(source, tag, comm, message, status);
    if (err == MPI_SUCCESS && recorder_is_on())
        add(*message, comm, status);
    return record_end(record, err);
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    MPI_Status own;
    struct mpilab_record *record =
        begin_probe(MPILAB_Improbe, MPILAB_POLLS, source, tag, comm, CALL_SITE);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const int err = PMPI_Improbe(source, tag, comm, flag, message, status);
    if (err == MPI_SUCCESS && *flag && recorder_is_on())
        add(*message, comm, status);
    return end_poll(record, err != MPI_SUCCESS || *flag, err);
}

int MPI_Mrecv(void *buffer, int count, MPI_Datatype datatype, MPI_Message *message,
              MPI_Status *status)
{
    MPI_Status own;
    const struct matched matched = take(message);
    struct mpilab_record *record =
        transfer_begin(MPILAB_Mrecv, MPILAB_RECEIVES, count, datatype, matched.source, matched.tag,
                       matched.comm, CALL_SITE);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const int err = PMPI_Mrecv(buffer, count, datatype, message, status);
    return receive_end(record, matched.comm, status, err);
}

int MPI_Imrecv(void *buffer, int count, MPI_Datatype datatype, MPI_Message *message,
               MPI_Request *request)
{
    const struct matched matched = take(message);
    struct mpilab_record *record =
        transfer_begin(MPILAB_Imrecv, MPILAB_RECEIVES | MPILAB_NONBLOCKING, count, datatype,
                       matched.source, matched.tag, matched.comm, CALL_SITE);
    return record_end_start(record, matched.comm, request,
                            PMPI_Imrecv(buffer, count, datatype, message, request));
}
