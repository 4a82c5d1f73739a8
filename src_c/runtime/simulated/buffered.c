/* Buffered sends, which SMPI does not have: a message is copied, and the copy is sent without
 * blocking. As in Open MPI, a send fails if its message does not fit into the attached buffer beside
 * those that are still under way, an empty message needs no buffer, and MPI_Buffer_detach waits for
 * all messages. The recorder wraps the sends alone. */
#include "simulated.h"
#include <string.h>

/* The messages of this rank that may still be under way. */
struct message {
    MPI_Request request;
    void *data;
    long long bytes; /* of the attached buffer */
    struct message *next;
};

static struct {
    void *buffer;
    long long bytes, used;
    int is_attached;
    struct message *sent;
} attached;

/* Forget the messages that have arrived; with `all`, wait for each of them. */
static int reclaim(int all)
{
    int err = MPI_SUCCESS;
    for (struct message **link = &attached.sent; *link != NULL && err == MPI_SUCCESS;) {
        struct message *const one = *link;
        int is_done = all;
        err = all ? PMPI_Wait(&one->request, MPI_STATUS_IGNORE)
                  : PMPI_Test(&one->request, &is_done, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS && is_done) {
            *link = one->next;
            attached.used -= one->bytes;
            free(one->data);
            free(one);
        } else {
            link = &one->next;
        }
    }
    return err;
}

int MPI_Buffer_attach(void *buffer, int bytes)
{
    if (attached.is_attached || bytes < 0)
        return attached.is_attached ? MPI_ERR_BUFFER : MPI_ERR_ARG;
    attached.buffer = buffer;
    attached.bytes = bytes;
    attached.is_attached = 1;
    return MPI_SUCCESS;
}

int MPI_Buffer_detach(void *address, int *bytes)
{
    if (!attached.is_attached)
        return MPI_ERR_BUFFER;
    const int err = reclaim(1);
    memcpy(address, &attached.buffer, sizeof attached.buffer);
    *bytes = (int)attached.bytes;
    attached.is_attached = 0;
    return err;
}

int simulated_bsend(const void *buffer, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm)
{
    int packed = 0, used = 0;
    int err = PMPI_Pack_size(count, datatype, comm, &packed);
    if (err != MPI_SUCCESS || dest == MPI_PROC_NULL)
        return err;
    const long long needed = packed == 0 ? 0 : (long long)packed + MPI_BSEND_OVERHEAD;
    if (attached.used + needed > attached.bytes)
        err = reclaim(0);
    if (err == MPI_SUCCESS && attached.used + needed > attached.bytes)
        err = MPI_ERR_BUFFER;
    if (err != MPI_SUCCESS)
        return err;
    struct message *const one = malloc(sizeof *one);
    void *const data = malloc((size_t)packed + 1);
    if (one == NULL || data == NULL) {
        free(one);
        free(data);
        return MPI_ERR_NO_MEM;
    }
    if (packed > 0)
        err = PMPI_Pack(buffer, count, datatype, data, packed, &used, comm);
    *one = (struct message){MPI_REQUEST_NULL, data, needed, attached.sent};
    if (err == MPI_SUCCESS)
        err = PMPI_Isend(data, used, MPI_PACKED, dest, tag, comm, &one->request);
    if (err != MPI_SUCCESS) {
        free(one);
        free(data);
        return err;
    }
    attached.sent = one;
    attached.used += needed;
    return MPI_SUCCESS;
}

/* The message is copied at once, so the request is complete: it is that of an empty message to
 * oneself. */
int simulated_ibsend(const void *buffer, int count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request *request)
{
    int err = simulated_bsend(buffer, count, datatype, dest, tag, comm);
    if (err == MPI_SUCCESS)
        err = PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, request);
    return err == MPI_SUCCESS ? PMPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF) : err;
}
