/* Matched probes, which SMPI does not have: a rank is one thread, so the message that a probe has
 * found is still the first of its sender and tag when the rank receives it. Before the rank probes
 * again, it takes in the messages that it has matched but not received. */
#include "simulated.h"
#include <string.h>

/* What an MPI_Message points to. */
struct message {
    MPI_Comm comm;
    MPI_Status found;
    int is_here; /* taken in: the message is no longer in MPI */
    int bytes;
    char *data;
    struct message *next;
};

static struct message *matched; /* and not received */

/* Take in the matched messages, so that no probe finds them a second time. */
static int take_in_all(void)
{
    int err = MPI_SUCCESS;
    for (struct message *one = matched; one != NULL && err == MPI_SUCCESS; one = one->next) {
        if (one->is_here)
            continue;
        err = PMPI_Get_count(&one->found, MPI_BYTE, &one->bytes);
        one->data = malloc((size_t)one->bytes + 1);
        if (one->data == NULL)
            return MPI_ERR_NO_MEM;
        if (err == MPI_SUCCESS)
            err = PMPI_Recv(one->data, one->bytes, MPI_BYTE, one->found.MPI_SOURCE,
                            one->found.MPI_TAG, one->comm, &one->found);
        one->is_here = 1;
    }
    return err;
}

static int match(const MPI_Status *found, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct message *const one = calloc(1, sizeof *one);
    if (one == NULL)
        return MPI_ERR_NO_MEM;
    one->comm = comm;
    one->found = *found;
    one->next = matched;
    matched = one;
    *message = one;
    if (status != MPI_STATUS_IGNORE)
        *status = *found;
    return MPI_SUCCESS;
}

static void forget(struct message *one)
{
    struct message **link = &matched;
    while (*link != one)
        link = &(*link)->next;
    *link = one->next;
    free(one->data);
    free(one);
}

/* A message from MPI_PROC_NULL: available at once, and empty. */
static int from_nobody(MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    *message = MPI_MESSAGE_NO_PROC;
    return PMPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, MPI_ANY_TAG, comm, status);
}

int simulated_mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    if (source == MPI_PROC_NULL)
        return from_nobody(comm, message, status);
    MPI_Status found;
    int err = take_in_all();
    if (err == MPI_SUCCESS)
        err = PMPI_Probe(source, tag, comm, &found);
    return err == MPI_SUCCESS ? match(&found, comm, message, status) : err;
}

int simulated_improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                      MPI_Status *status)
{
    *flag = source == MPI_PROC_NULL;
    if (*flag)
        return from_nobody(comm, message, status);
    MPI_Status found;
    int err = take_in_all();
    if (err == MPI_SUCCESS)
        err = PMPI_Iprobe(source, tag, comm, flag, &found);
    return err == MPI_SUCCESS && *flag ? match(&found, comm, message, status) : err;
}

/* Deliver the data of a message that has been taken in: all of it, or none. */
static int deliver(const struct message *one, void *buffer, int count, MPI_Datatype datatype)
{
    int size = 0, position = 0;
    const int err = PMPI_Type_size(datatype, &size);
    if (err != MPI_SUCCESS || one->bytes == 0)
        return err;
    if (one->bytes > (long long)count * size)
        return MPI_ERR_TRUNCATE;
    return PMPI_Unpack(one->data, one->bytes, &position, buffer, one->bytes / size, datatype,
                       one->comm);
}

int simulated_mrecv(void *buffer, int count, MPI_Datatype datatype, MPI_Message *message,
                    MPI_Status *status)
{
    struct message *const one = *message;
    if (one == MPI_MESSAGE_NO_PROC) {
        *message = MPI_MESSAGE_NULL;
        return simulated_hear_nobody(status);
    }
    int err;
    if (one->is_here) {
        err = deliver(one, buffer, count, datatype);
        if (status != MPI_STATUS_IGNORE)
            *status = one->found;
    } else {
        err = PMPI_Recv(buffer, count, datatype, one->found.MPI_SOURCE, one->found.MPI_TAG,
                        one->comm, status);
    }
    forget(one);
    *message = MPI_MESSAGE_NULL;
    return err;
}

int simulated_imrecv(void *buffer, int count, MPI_Datatype datatype, MPI_Message *message,
                     MPI_Request *request)
{
    struct message *const one = *message;
    if (one == MPI_MESSAGE_NO_PROC) {
        *message = MPI_MESSAGE_NULL;
        return PMPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_SELF, request);
    }
    int err;
    if (one->is_here) {
        /* The request of a message to oneself: its status is not that of the message. */
        err = deliver(one, buffer, count, datatype);
        if (err == MPI_SUCCESS)
            err = PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, request);
        if (err == MPI_SUCCESS)
            err = PMPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF);
    } else {
        err = PMPI_Irecv(buffer, count, datatype, one->found.MPI_SOURCE, one->found.MPI_TAG,
                         one->comm, request);
    }
    forget(one);
    *message = MPI_MESSAGE_NULL;
    return err;
}
