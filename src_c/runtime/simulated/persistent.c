/* Persistent requests, where SMPI does not do as MPI says.
 *
 * If the peer of a request is MPI_PROC_NULL, SMPI ends the run once it is started. So it is not
 * started, and a wait for it returns at once, as for an inactive request.
 *
 * Of a derived datatype, SMPI copies what a request will send when it is made. So it is made for a
 * copy here, which is filled at each start. */
#include "simulated.h"
#undef PMPI_Send_init
#undef PMPI_Ssend_init
#undef PMPI_Recv_init
#undef PMPI_Start
#undef PMPI_Wait
#undef PMPI_Test

/* The persistent requests of this rank. */
static struct persistent {
    MPI_Request request;
    int is_lonely; /* its peer is MPI_PROC_NULL */
    /* What is sent, `count` elements of a derived datatype; count is 0 for all other requests. */
    const void *buffer;
    int count;
    MPI_Datatype datatype;
    MPI_Comm comm;
    void *copy;
    int bytes; /* of the copy */
    struct persistent *next;
} *made;

static void forget(struct persistent *one)
{
    if (one == NULL)
        return;
    if (one->count > 0)
        PMPI_Type_free(&one->datatype);
    free(one->copy);
    free(one);
}

static int remember(struct persistent *one, int peer, const MPI_Request *request, int err)
{
    if (one == NULL || err != MPI_SUCCESS) {
        forget(one);
        return err != MPI_SUCCESS ? err : MPI_ERR_NO_MEM;
    }
    simulated_begun(err, MPI_ANY_SOURCE, request); /* not complete, even if the peer is nobody */
    one->request = *request;
    one->is_lonely = peer == MPI_PROC_NULL;
    one->next = made;
    made = one;
    return MPI_SUCCESS;
}

/* An entry for a request that will send this; NULL if there is no memory. The datatype may be freed
 * before the request. */
static struct persistent *make_entry(const void *buffer, int count, MPI_Datatype datatype,
                                     MPI_Comm comm)
{
    struct persistent *const one = calloc(1, sizeof *one);
    if (one == NULL || count <= 0 || !simulated_is_derived(datatype))
        return one;
    one->buffer = buffer, one->comm = comm;
    PMPI_Type_size(datatype, &one->bytes);
    one->bytes *= count;
    PMPI_Type_dup(datatype, &one->datatype);
    one->count = count;
    one->copy = malloc((size_t)one->bytes + 1);
    if (one->copy != NULL)
        return one;
    forget(one);
    return NULL;
}

/* The link to the entry of a request; a link to NULL if it is not persistent. */
static struct persistent **find(MPI_Request request)
{
    struct persistent **link = &made;
    while (*link != NULL && (*link)->request != request)
        link = &(*link)->next;
    return link;
}

static int is_lonely(MPI_Request request)
{
    const struct persistent *const one = *find(request);
    return one != NULL && one->is_lonely;
}

int simulated_hear_nobody(MPI_Status *status)
{
    return PMPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_SELF, status);
}

#define SEND(name, called)                                                                        \
    int simulated_##name(const void *buffer, int count, MPI_Datatype datatype, int peer, int tag, \
                         MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                             \
        struct persistent *const one = make_entry(buffer, count, datatype, comm);                 \
        const int is_copied = one != NULL && one->count > 0;                                      \
        if (is_copied)                                                                            \
            buffer = one->copy, count = one->bytes, datatype = MPI_BYTE;                          \
        return remember(one, peer, request,                                                       \
                        PMPI_##called(buffer, count, datatype, peer, tag, comm, request));        \
    }

SEND(send_init, Send_init)
SEND(ssend_init, Ssend_init)

int simulated_recv_init(void *buffer, int count, MPI_Datatype datatype, int peer, int tag,
                        MPI_Comm comm, MPI_Request *request)
{
    return remember(calloc(1, sizeof(struct persistent)), peer, request,
                    PMPI_Recv_init(buffer, count, datatype, peer, tag, comm, request));
}

int simulated_start(MPI_Request *request)
{
    struct persistent *const one = *find(*request);
    int place = 0;
    if (one != NULL && one->is_lonely)
        return MPI_SUCCESS;
    if (one != NULL && one->count > 0)
        PMPI_Pack(one->buffer, one->count, one->datatype, one->copy, one->bytes, &place, one->comm);
    return PMPI_Start(request);
}

/* SMPI would reset the handle of a request that was not started. */
int simulated_wait(MPI_Request *request, MPI_Status *status)
{
    return is_lonely(*request) ? simulated_hear_nobody(status) : PMPI_Wait(request, status);
}

int simulated_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (!is_lonely(*request)) {
        const int err = PMPI_Test(request, flag, status);
        simulated_polled(err != MPI_SUCCESS || *flag);
        return err;
    }
    *flag = 1;
    return simulated_hear_nobody(status);
}

int simulated_startall(int count, MPI_Request requests[])
{
    int err = MPI_SUCCESS;
    for (int i = 0; i < count && err == MPI_SUCCESS; i++)
        err = simulated_start(&requests[i]);
    return err;
}

/* SMPI frees the request even while its message is under way, and uses it when that arrives. So the
 * handle is gone, and the request stays until the process ends. */
int simulated_request_free(MPI_Request *request)
{
    struct persistent **const link = find(*request), *const one = *link;
    if (*request == MPI_REQUEST_NULL)
        return MPI_ERR_REQUEST;
    if (one != NULL)
        *link = one->next;
    /* What is copied may still be under way. */
    if (one == NULL || one->count == 0)
        free(one);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
