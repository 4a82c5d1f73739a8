/* Point-to-point calls. Each wrapper writes a record, does the call, completes the record. In
 * strict mode a standard send becomes a synchronous one. */
#include "recorder.h"

int64_t typed_bytes(int count, MPI_Datatype datatype)
{
    int size = 0;
    if (datatype != MPI_DATATYPE_NULL)
        PMPI_Type_size(datatype, &size);
    return (int64_t)count * size;
}

void record_received(struct mpilab_record *record, MPI_Comm comm, const MPI_Status *status)
{
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
    record->got_peer = communicator_rank(comm, status->MPI_SOURCE);
    record->got_tag = status->MPI_TAG;
    record->got_bytes = bytes;
}

static struct mpilab_record *begin(enum mpilab_operation operation, int flags, int count,
                                   MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
                                   uintptr_t site)
{
    struct mpilab_record *record = record_begin(operation, flags, comm, site);
    if (recorder_is_on()) {
        record->peer = communicator_rank(comm, peer);
        record->tag = tag == MPI_ANY_TAG ? MPILAB_ANY : tag;
        record->count = count;
        record->bytes = typed_bytes(count, datatype);
    }
    return record;
}

static int end_receive(struct mpilab_record *record, MPI_Comm comm, const MPI_Status *status,
                       int err)
{
    if (err == MPI_SUCCESS && recorder_is_on())
        record_received(record, comm, status);
    return record_end_blocking(record, err);
}

#define SEND_ARGUMENTS const void *buffer, int count, MPI_Datatype datatype, int dest, int tag
#define SEND_VALUES    buffer, count, datatype, dest, tag

#define BLOCKING_SEND(name, real, more_flags)                                                   \
    int MPI_##name(SEND_ARGUMENTS, MPI_Comm comm)                                               \
    {                                                                                           \
        struct mpilab_record *record = begin(MPILAB_##name, MPILAB_SENDS | (more_flags), count, \
                                             datatype, dest, tag, comm, CALL_SITE);             \
        return record_end_blocking(record, real(SEND_VALUES, comm));                            \
    }

#define STRICT_FLAG (recorder_is_strict() ? MPILAB_SYNCHRONOUS : 0)

BLOCKING_SEND(Send, (recorder_is_strict() ? PMPI_Ssend : PMPI_Send), STRICT_FLAG)
BLOCKING_SEND(Bsend, PMPI_Bsend, 0)
BLOCKING_SEND(Ssend, PMPI_Ssend, MPILAB_SYNCHRONOUS)
BLOCKING_SEND(Rsend, PMPI_Rsend, 0)

#define NONBLOCKING_SEND(name, real, more_flags)                                          \
    int MPI_##name(SEND_ARGUMENTS, MPI_Comm comm, MPI_Request *request)                   \
    {                                                                                     \
        struct mpilab_record *record =                                                    \
            begin(MPILAB_##name, MPILAB_SENDS | MPILAB_NONBLOCKING | (more_flags), count, \
                  datatype, dest, tag, comm, CALL_SITE);                                  \
        return record_end_start(record, comm, request, real(SEND_VALUES, comm, request)); \
    }

NONBLOCKING_SEND(Isend, (recorder_is_strict() ? PMPI_Issend : PMPI_Isend), STRICT_FLAG)
NONBLOCKING_SEND(Ibsend, PMPI_Ibsend, 0)
NONBLOCKING_SEND(Issend, PMPI_Issend, MPILAB_SYNCHRONOUS)
NONBLOCKING_SEND(Irsend, PMPI_Irsend, 0)

int MPI_Recv(void *buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    MPI_Status own;
    struct mpilab_record *record =
        begin(MPILAB_Recv, MPILAB_RECEIVES, count, datatype, source, tag, comm, CALL_SITE);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const int err = PMPI_Recv(buffer, count, datatype, source, tag, comm, status);
    return end_receive(record, comm, status, err);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    struct mpilab_record *record = begin(MPILAB_Irecv, MPILAB_RECEIVES | MPILAB_NONBLOCKING, count,
                                         datatype, source, tag, comm, CALL_SITE);
    return record_end_start(record, comm, request,
                            PMPI_Irecv(buffer, count, datatype, source, tag, comm, request));
}

/* A send-receive is one call and two messages: two records, of which the second one, the receive,
 * is the call that the rank is in. */
static struct mpilab_record *begin_exchange(enum mpilab_operation operation, int sendcount,
                                            MPI_Datatype sendtype, int dest, int sendtag,
                                            int recvcount, MPI_Datatype recvtype, int source,
                                            int recvtag, MPI_Comm comm, uintptr_t site,
                                            struct mpilab_record **sent)
{
    *sent = begin(operation, MPILAB_SENDS, sendcount, sendtype, dest, sendtag, comm, site);
    return begin(operation, MPILAB_RECEIVES, recvcount, recvtype, source, recvtag, comm, site);
}

static int end_exchange(struct mpilab_record *sent, struct mpilab_record *received, MPI_Comm comm,
                        const MPI_Status *status, int err)
{
    end_receive(received, comm, status, err);
    if (recorder_is_on()) {
        sent->error = err;
        sent->end_ns = sent->done_ns = received->end_ns;
    }
    return err;
}

int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                 void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                 MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    struct mpilab_record *sent;
    struct mpilab_record *received =
        begin_exchange(MPILAB_Sendrecv, sendcount, sendtype, dest, sendtag, recvcount, recvtype,
                       source, recvtag, comm, CALL_SITE, &sent);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const int err = PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                                  recvtype, source, recvtag, comm, status);
    return end_exchange(sent, received, comm, status, err);
}

int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype datatype, int dest, int sendtag,
                         int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    struct mpilab_record *sent;
    struct mpilab_record *received =
        begin_exchange(MPILAB_Sendrecv_replace, count, datatype, dest, sendtag, count, datatype,
                       source, recvtag, comm, CALL_SITE, &sent);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const int err = PMPI_Sendrecv_replace(buffer, count, datatype, dest, sendtag, source, recvtag,
                                          comm, status);
    return end_exchange(sent, received, comm, status, err);
}

static struct mpilab_record *begin_probe(enum mpilab_operation operation, int flags, int source,
                                         int tag, MPI_Comm comm, uintptr_t site)
{
    struct mpilab_record *again =
        flags & MPILAB_POLLS ? record_repeated_poll(operation, site) : NULL;
    return again != NULL ? again
                         : begin(operation, flags, 0, MPI_DATATYPE_NULL, source, tag, comm, site);
}

static int end_poll(struct mpilab_record *record, int answered, int err)
{
    record->count++;
    if (answered || err != MPI_SUCCESS)
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
    return end_poll(record, *flag, err);
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct mpilab_record *record = begin_probe(MPILAB_Mprobe, 0, source, tag, comm, CALL_SITE);
    return record_end(record, PMPI_Mprobe(source, tag, comm, message, status));
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    struct mpilab_record *record =
        begin_probe(MPILAB_Improbe, MPILAB_POLLS, source, tag, comm, CALL_SITE);
    const int err = PMPI_Improbe(source, tag, comm, flag, message, status);
    return end_poll(record, *flag, err);
}

/* A matched message does not say on which communicator it travels: its source is known only as a
 * rank of that one, so these records name no peer in the base communicator. */
int MPI_Mrecv(void *buffer, int count, MPI_Datatype datatype, MPI_Message *message,
              MPI_Status *status)
{
    MPI_Status own;
    struct mpilab_record *record = begin(MPILAB_Mrecv, MPILAB_RECEIVES, count, datatype,
                                         MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_NULL, CALL_SITE);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const int err = PMPI_Mrecv(buffer, count, datatype, message, status);
    return end_receive(record, MPI_COMM_NULL, status, err);
}

int MPI_Imrecv(void *buffer, int count, MPI_Datatype datatype, MPI_Message *message,
               MPI_Request *request)
{
    struct mpilab_record *record =
        begin(MPILAB_Imrecv, MPILAB_RECEIVES | MPILAB_NONBLOCKING, count, datatype, MPI_ANY_SOURCE,
              MPI_ANY_TAG, MPI_COMM_NULL, CALL_SITE);
    return record_end_start(record, MPI_COMM_NULL, request,
                            PMPI_Imrecv(buffer, count, datatype, message, request));
}
