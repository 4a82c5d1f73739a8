/* What MPI calls return and report, where SMPI differs from Open MPI. */
#include "simulated.h"
#include <limits.h>
#include <string.h>
#undef PMPI_Comm_get_errhandler
#undef PMPI_Comm_split_type
#undef PMPI_Errhandler_free
#undef PMPI_Cancel
#undef PMPI_Error_class
#undef PMPI_Irecv
#undef PMPI_Isend
#undef PMPI_Issend
#undef PMPI_Sendrecv
#undef PMPI_Sendrecv_replace
#undef PMPI_Testall
#undef PMPI_Testany
#undef PMPI_Waitany

/* SMPI's error classes as Open MPI numbers them (its mpi.h), because recordings hold these
 * numbers. */
static const struct {
    int smpi, openmpi;
} numbers[] = {
    {MPI_SUCCESS, 0},     {MPI_ERR_BUFFER, 1},  {MPI_ERR_COUNT, 2},      {MPI_ERR_TYPE, 3},
    {MPI_ERR_TAG, 4},     {MPI_ERR_COMM, 5},    {MPI_ERR_RANK, 6},       {MPI_ERR_REQUEST, 7},
    {MPI_ERR_ROOT, 8},    {MPI_ERR_GROUP, 9},   {MPI_ERR_OP, 10},        {MPI_ERR_TOPOLOGY, 11},
    {MPI_ERR_DIMS, 12},   {MPI_ERR_ARG, 13},    {MPI_ERR_UNKNOWN, 14},   {MPI_ERR_TRUNCATE, 15},
    {MPI_ERR_OTHER, 16},  {MPI_ERR_INTERN, 17}, {MPI_ERR_IN_STATUS, 18}, {MPI_ERR_PENDING, 19},
    {MPI_ERR_KEYVAL, 36}, {MPI_ERR_NO_MEM, 39},
};
enum { OPENMPI_UNKNOWN = 14 };

int simulated_error_class(int error, int *class)
{
    *class = OPENMPI_UNKNOWN;
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].smpi == error)
            *class = numbers[i].openmpi;
    return MPI_SUCCESS;
}

int simulated_get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    int elements = 0;
    const int err = PMPI_Get_count(status, datatype, &elements);
    *count = elements;
    return err;
}

/* SMPI orders the ranks on a node as in MPI_COMM_WORLD, whatever their keys and their order in
 * `comm` are: in a communicator in reverse order, another rank would lead the node. The ranks of
 * `node` can be in any order here, so equal keys are ordered by the rank in `comm` first. */
static int reorder(MPI_Comm comm, MPI_Comm node, int key, MPI_Comm *born)
{
    int rank, size;
    MPI_Comm by_rank;
    int err = PMPI_Comm_size(node, &size);
    if (err == MPI_SUCCESS && size == 1)
        return *born = node, MPI_SUCCESS;
    if (err == MPI_SUCCESS)
        err = PMPI_Comm_rank(comm, &rank);
    if (err == MPI_SUCCESS)
        err = PMPI_Comm_split(node, 0, rank, &by_rank);
    if (err == MPI_SUCCESS) {
        err = PMPI_Comm_split(by_rank, 0, key, born);
        PMPI_Comm_free(&by_rank);
    }
    PMPI_Comm_free(&node);
    return err;
}

int simulated_comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *born)
{
    MPI_Comm node = MPI_COMM_NULL;
    *born = MPI_COMM_NULL;
    const int err = PMPI_Comm_split_type(comm, type, key, info, &node);
    return err != MPI_SUCCESS || node == MPI_COMM_NULL ? err : reorder(comm, node, key, born);
}

int simulated_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
    const int err = PMPI_Comm_get_errhandler(comm, handler);
    if (err == MPI_SUCCESS && (*handler == NULL || *handler == MPI_ERRHANDLER_NULL))
        *handler = MPI_ERRORS_ARE_FATAL;
    return err;
}

int simulated_errhandler_free(MPI_Errhandler *handler)
{
    if (*handler == MPI_ERRORS_ARE_FATAL || *handler == MPI_ERRORS_RETURN)
        *handler = MPI_ERRHANDLER_NULL;
    return *handler == MPI_ERRHANDLER_NULL ? MPI_SUCCESS : PMPI_Errhandler_free(handler);
}

/* The data to send, packed into separate memory, which the caller frees. */
static int pack(const void *buffer, int count, MPI_Datatype datatype, MPI_Comm comm, void **packed,
                int *bytes)
{
    int size = 0;
    *packed = NULL;
    *bytes = 0;
    int err = PMPI_Type_size(datatype, &size);
    if (err != MPI_SUCCESS || count <= 0 || size <= 0)
        return err;
    if (count > INT_MAX / size)
        return MPI_ERR_COUNT;
    *packed = malloc((size_t)count * (size_t)size);
    if (*packed == NULL)
        return MPI_ERR_NO_MEM;
    err = PMPI_Pack(buffer, count, datatype, *packed, count * size, bytes, comm);
    if (err != MPI_SUCCESS) {
        free(*packed);
        *packed = NULL;
    }
    return err;
}

static int is_rank(int rank, int size)
{
    return rank == MPI_PROC_NULL || (rank >= 0 && rank < size);
}

/* PMPI_Sendrecv with the status and return value of Open MPI. SMPI reports a message that was too
 * long only in the status; for a message to oneself, it reports neither that nor the source; and it
 * ends the run for some ranks that do not exist. */
static int exchange(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
                    int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source,
                    int recvtag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    status->MPI_ERROR = MPI_SUCCESS;
    int rank = MPI_PROC_NULL, size = 0;
    int err = PMPI_Comm_size(comm, &size);
    if (err == MPI_SUCCESS &&
        !(is_rank(dest, size) && (source == MPI_ANY_SOURCE || is_rank(source, size))))
        err = MPI_ERR_RANK;
    if (err != MPI_SUCCESS)
        return err;
    err = PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                        source, recvtag, comm, status);
    if (err != MPI_SUCCESS)
        return err;
    PMPI_Comm_rank(comm, &rank);
    if (dest == rank && source == rank) {
        int sent = 0, room = 0;
        PMPI_Type_size(sendtype, &sent);
        PMPI_Type_size(recvtype, &room);
        status->MPI_SOURCE = rank;
        status->MPI_TAG = sendtag;
        if ((long long)sent * sendcount > (long long)room * recvcount)
            status->MPI_ERROR = MPI_ERR_TRUNCATE;
    }
    return status->MPI_ERROR;
}

/* Data sent from the address where other data arrives: correct if the datatypes access different
 * bytes, but SimGrid 4 rejects equal addresses, and SimGrid 3 copies nothing between them on the
 * same rank. Packed data is at a different address; a packed message takes as long, and matches any
 * datatype. */
static int exchange_packed(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
                           int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                           int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    void *packed;
    int bytes;
    int err = pack(sendbuf, sendcount, sendtype, comm, &packed, &bytes);
    if (err == MPI_SUCCESS)
        err = exchange(packed, bytes, MPI_PACKED, dest, sendtag, recvbuf, recvcount, recvtype,
                       source, recvtag, comm, status);
    free(packed);
    return err;
}

int simulated_sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
                       int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source,
                       int recvtag, MPI_Comm comm, MPI_Status *status)
{
    const int is_in_place = sendbuf == recvbuf && sendcount > 0 && recvcount > 0;
    return (is_in_place ? exchange_packed : exchange)(sendbuf, sendcount, sendtype, dest, sendtag,
                                                      recvbuf, recvcount, recvtype, source, recvtag,
                                                      comm, status);
}

int simulated_sendrecv_replace(void *buffer, int count, MPI_Datatype datatype, int dest,
                               int sendtag, int source, int recvtag, MPI_Comm comm,
                               MPI_Status *status)
{
    /* SMPI's own function ends the run (SimGrid 3) or sends nothing (SimGrid 4) for an empty
     * message, and takes the extent of a datatype for the room that its data needs. */
    return exchange_packed(buffer, count, datatype, dest, sendtag, buffer, count, datatype, source,
                           recvtag, comm, status);
}

/* Requests completed in an MPI_Testall that was not the last: they have become null, and the next
 * call would not know of them. */
static struct done {
    const MPI_Request *request;
    MPI_Status status;
    struct done *next;
} *done;

static void keep(const MPI_Request *request, const MPI_Status *status)
{
    struct done *const one = malloc(sizeof *one);
    if (one == NULL)
        abort();
    *one = (struct done){request, *status, done};
    done = one;
}

/* The link to the entry of this request; a link to NULL if there is none. */
static struct done **find(const MPI_Request *request)
{
    struct done **link = &done;
    while (*link != NULL && (*link)->request != request)
        link = &(*link)->next;
    return link;
}

static void forget(const MPI_Request *request)
{
    struct done **const link = find(request), *const one = *link;
    if (one != NULL)
        *link = one->next;
    free(one);
}

static int test_all(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    if (count <= 0 || statuses == MPI_STATUSES_IGNORE)
        return PMPI_Testall(count, requests, flag, statuses);
    for (int i = 0; i < count; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            forget(&requests[i]); /* a different request in the same variable */
    MPI_Request *const before = malloc((size_t)count * sizeof *before);
    if (before == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(before, requests, (size_t)count * sizeof *before);
    const int err = PMPI_Testall(count, requests, flag, statuses);
    for (int i = 0; i < count && err == MPI_SUCCESS; i++) {
        const struct done *const earlier = *find(&requests[i]);
        if (earlier != NULL)
            statuses[i] = earlier->status;
        if (*flag)
            forget(&requests[i]);
        else if (before[i] != MPI_REQUEST_NULL && requests[i] == MPI_REQUEST_NULL)
            keep(&requests[i], &statuses[i]);
    }
    free(before);
    return err;
}

int simulated_testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    const int err = test_all(count, requests, flag, statuses);
    simulated_polled(err != MPI_SUCCESS || *flag);
    return err;
}

/* SMPI treats a send that completes at once as no request, and reports that there is nothing to
 * test. */
int simulated_testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    int err = PMPI_Testany(count, requests, index, flag, status);
    simulated_polled(err != MPI_SUCCESS || *flag);
    if (err != MPI_SUCCESS || !*flag || *index != MPI_UNDEFINED)
        return err;
    for (int i = 0; i < count && err == MPI_SUCCESS; i++) {
        int is_done = 0;
        MPI_Status own;
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        err = PMPI_Test(&requests[i], &is_done, &own);
        if (!is_done || requests[i] != MPI_REQUEST_NULL)
            continue; /* an inactive persistent request stays */
        *index = i;
        if (status != MPI_STATUS_IGNORE)
            *status = own;
        break;
    }
    return err;
}

/* SMPI divides by the size of the datatype. */
int MPI_Unpack(const void *packed, int bytes, int *position, void *buffer, int count,
               MPI_Datatype datatype, MPI_Comm comm)
{
    int size = 0;
    const int err = PMPI_Type_size(datatype, &size);
    if (err != MPI_SUCCESS || size == 0)
        return err;
    return PMPI_Unpack(packed, bytes, position, buffer, count, datatype, comm);
}

/* Handles of requests with MPI_PROC_NULL, complete from the beginning. SMPI's MPI_Waitany frees
 * those that it does not return. A handle stays here until another request gets its address. */
static struct {
    MPI_Request *all;
    int count, room;
} of_nobody;

/* The place of `request` there; `of_nobody.count` if it has none. */
static int place_of(MPI_Request request)
{
    int at = 0;
    while (at < of_nobody.count && of_nobody.all[at] != request)
        at++;
    return at;
}

int simulated_begun(int err, int peer, const MPI_Request *made)
{
    if (err != MPI_SUCCESS || *made == MPI_REQUEST_NULL)
        return err;
    const int at = place_of(*made), is_there = at < of_nobody.count;
    if (is_there == (peer == MPI_PROC_NULL))
        return err;
    if (is_there) {
        of_nobody.all[at] = of_nobody.all[--of_nobody.count];
        return err;
    }
    if (of_nobody.count == of_nobody.room) {
        const int room = 2 * of_nobody.room + 4;
        MPI_Request *const all = realloc(of_nobody.all, (size_t)room * sizeof *all);
        if (all == NULL)
            abort();
        of_nobody.all = all, of_nobody.room = room;
    }
    of_nobody.all[of_nobody.count++] = *made;
    return err;
}

#define NOTED(name, called, buffer_type)                                                          \
    int simulated_##name(buffer_type buffer, int count, MPI_Datatype datatype, int peer, int tag, \
                         MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                             \
        const int err = PMPI_##called(buffer, count, datatype, peer, tag, comm, request);         \
        return simulated_begun(err, peer, request);                                               \
    }

NOTED(isend, Isend, const void *)
NOTED(issend, Issend, const void *)
NOTED(irecv, Irecv, void *)

/* SMPI crashes if there is nothing to wait for. */
int simulated_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    int left = 0;
    for (int i = 0; i < count; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        left++;
        if (place_of(requests[i]) < of_nobody.count) {
            *index = i;
            return PMPI_Wait(&requests[i], status);
        }
    }
    if (left > 0)
        return PMPI_Waitany(count, requests, index, status);
    *index = MPI_UNDEFINED;
    return simulated_hear_nobody(status);
}

/* SMPI crashes if there is no request, and frees one that is complete from the beginning twice. */
int simulated_cancel(MPI_Request *request)
{
    if (*request == MPI_REQUEST_NULL)
        return MPI_ERR_REQUEST;
    return place_of(*request) < of_nobody.count ? MPI_SUCCESS : PMPI_Cancel(request);
}
