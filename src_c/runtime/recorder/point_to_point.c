/* Point-to-point calls. Each wrapper writes a record, makes the call, and completes the record. In
 * strict mode a standard send becomes a synchronous one. */
#include "mpilab.h"
#include "recorder.h"
#include <string.h>

int64_t status_bytes(const MPI_Status *status)
{
    MPI_Count bytes = 0;
#ifdef OPEN_MPI
    bytes = (MPI_Count)status->_ucount; /* the result of the call below, without its overhead */
#else
    PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
#endif
    return bytes;
}

void record_received(struct mpilab_record *record, const struct members *members,
                     const MPI_Status *status)
{
    record->got_peer = communicator_member(members, status->MPI_SOURCE);
    record->got_tag = status->MPI_TAG;
    record->got_bytes = status_bytes(status);
}

static void describe(struct mpilab_record *record, int count, MPI_Datatype datatype, int peer,
                     int tag, MPI_Comm comm)
{
    if (recorder_is_on()) {
        record->peer = communicator_rank(comm, peer);
        record->tag = tag == MPI_ANY_TAG ? MPILAB_ANY : tag;
        record->count = count;
        record->bytes = typed_bytes(count, datatype);
        /* For a rank that does not exist, keep its number and the number of ranks. */
        if (record->peer == MPILAB_NOBODY && peer != MPI_PROC_NULL) {
            record->got_peer = peer;
            record->members = communicator_size(comm);
        }
    }
}

struct mpilab_record *transfer_begin(enum mpilab_operation operation, int flags, int count,
                                     MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
                                     uintptr_t site)
{
    struct mpilab_record *record = record_begin(operation, flags, comm, site);
    describe(record, count, datatype, peer, tag, comm);
    return record;
}

int receive_end(struct mpilab_record *record, MPI_Comm comm, const MPI_Status *status, int error)
{
    /* For a message that was too long, the source and the length are known. */
    if (recorder_is_on() &&
        (error == MPI_SUCCESS || recorder_error_class(error) == MPI_ERR_TRUNCATE)) {
        struct members *const members = communicator_hold(comm);
        record_received(record, members, status);
        communicator_release(members);
    }
    return record_end_blocking(record, error);
}

#define SEND_ARGUMENTS const void *buffer, int count, MPI_Datatype datatype, int dest, int tag
#define SEND_VALUES    buffer, count, datatype, dest, tag

#define BLOCKING_SEND(name, real, more_flags)                                                      \
    int MPI_##name(SEND_ARGUMENTS, MPI_Comm comm)                                                  \
    {                                                                                              \
        struct mpilab_record *record =                                                             \
            transfer_begin(MPILAB_##name, MPILAB_SENDS | (more_flags), count, datatype, dest, tag, \
                           comm, CALL_SITE);                                                       \
        return record_end_blocking(record, real(SEND_VALUES, comm));                               \
    }

#define STRICT_FLAG (recorder_is_strict() ? MPILAB_SYNCHRONOUS : 0)

BLOCKING_SEND(Send, (recorder_is_strict() ? PMPI_Ssend : PMPI_Send), STRICT_FLAG)
BLOCKING_SEND(Bsend, PMPI_Bsend, 0)
BLOCKING_SEND(Ssend, PMPI_Ssend, MPILAB_SYNCHRONOUS)
BLOCKING_SEND(Rsend, PMPI_Rsend, 0)

static int send_started(int err, const void *buffer, int count, MPI_Datatype datatype, int dest,
                        const MPI_Request *request)
{
    if (err != MPI_SUCCESS || !recorder_is_on() || !recorder_is_strict())
        return err;
    struct pending *entry = request_find(*request, request);
    if (entry != NULL) {
        request_sends(entry, buffer, count, datatype, dest);
        request_started(entry);
    }
    return err;
}

#define NONBLOCKING_SEND(name, real, more_flags)                                                   \
    int MPI_##name(SEND_ARGUMENTS, MPI_Comm comm, MPI_Request *request)                            \
    {                                                                                              \
        struct mpilab_record *record =                                                             \
            transfer_begin(MPILAB_##name, MPILAB_SENDS | MPILAB_NONBLOCKING | (more_flags), count, \
                           datatype, dest, tag, comm, CALL_SITE);                                  \
        const int err = record_end_start(record, comm, request, real(SEND_VALUES, comm, request)); \
        return send_started(err, buffer, count, datatype, dest, request);                          \
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
        transfer_begin(MPILAB_Recv, MPILAB_RECEIVES, count, datatype, source, tag, comm, CALL_SITE);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    const int err = PMPI_Recv(buffer, count, datatype, source, tag, comm, status);
    return receive_end(record, comm, status, err);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    struct mpilab_record *record =
        transfer_begin(MPILAB_Irecv, MPILAB_RECEIVES | MPILAB_NONBLOCKING, count, datatype, source,
                       tag, comm, CALL_SITE);
    return record_end_start(record, comm, request,
                            PMPI_Irecv(buffer, count, datatype, source, tag, comm, request));
}

/* A send-receive is one call and two messages, so it has two records; the second one, the receive,
 * is the call that the rank is in. */
static struct mpilab_record *begin_exchange(enum mpilab_operation operation, int sendcount,
                                            MPI_Datatype sendtype, int dest, int sendtag,
                                            int recvcount, MPI_Datatype recvtype, int source,
                                            int recvtag, MPI_Comm comm, uintptr_t site,
                                            struct mpilab_record **sent)
{
    *sent = transfer_begin(operation, MPILAB_SENDS, sendcount, sendtype, dest, sendtag, comm, site);
    struct mpilab_record *received = record_add(operation, MPILAB_RECEIVES, comm, site);
    describe(received, recvcount, recvtype, source, recvtag, comm);
    return received;
}

static int end_exchange(struct mpilab_record *sent, struct mpilab_record *received, MPI_Comm comm,
                        const MPI_Status *status, int err)
{
    receive_end(received, comm, status, err);
    if (recorder_is_on()) {
        sent->error = received->error;
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

/* A message to oneself takes 0.1 to 0.4 µs more than this. */
int mpilab_copied(const void *from, int fromcount, MPI_Datatype fromtype, void *to, int tocount,
                  MPI_Datatype totype)
{
    if (recorder_is_on() || fromtype != totype || fromcount <= 0 || fromcount > tocount)
        return 0;
    const int64_t bytes = dense_bytes(fromcount, fromtype);
    if (bytes == 0)
        return 0;
    memcpy(to, from, (size_t)bytes);
    return 1;
}
