/* Persistent requests whose peer is MPI_PROC_NULL: SMPI ends the run if one is started. So it is
 * not started, and a wait for it returns at once, as for an inactive request. */
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
    struct persistent *next;
} *made;

static int remember(int peer, const MPI_Request *request, int err)
{
    if (err != MPI_SUCCESS)
        return err;
    simulated_begun(err, MPI_ANY_SOURCE, request); /* not complete, even if the peer is nobody */
    struct persistent *const one = malloc(sizeof *one);
    if (one == NULL)
        return MPI_ERR_NO_MEM;
    *one = (struct persistent){*request, peer == MPI_PROC_NULL, made};
    made = one;
    return MPI_SUCCESS;
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

#define PERSISTENT(name, called, buffer_type)                                                     \
    int simulated_##name(buffer_type buffer, int count, MPI_Datatype datatype, int peer, int tag, \
                         MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                             \
        return remember(peer, request,                                                            \
                        PMPI_##called(buffer, count, datatype, peer, tag, comm, request));        \
    }

PERSISTENT(send_init, Send_init, const void *)
PERSISTENT(ssend_init, Ssend_init, const void *)
PERSISTENT(recv_init, Recv_init, void *)

int simulated_start(MPI_Request *request)
{
    return is_lonely(*request) ? MPI_SUCCESS : PMPI_Start(request);
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
    free(one);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
