/* Exchanges at the edges of MPI_Sendrecv and MPI_Sendrecv_replace. Each rank prints what came of every
 * one, in words that are the same for every MPI. */
#include "mpilab.h"
#include <stdio.h>

enum { INTS = 8 };

static const char *name_of(int error)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    return class == MPI_SUCCESS        ? "fine"
           : class == MPI_ERR_TRUNCATE ? "truncated"
           : class == MPI_ERR_RANK     ? "no such rank"
                                       : "another error";
}

static void tell(const char *what, int error, const MPI_Status *status, const int data[INTS])
{
    printf("%s: %s", what, name_of(error));
    if (error == MPI_SUCCESS) {
        int bytes = -1;
        MPI_Get_count(status, MPI_BYTE, &bytes);
        if (status->MPI_SOURCE == MPI_PROC_NULL)
            printf(", from nobody");
        else
            printf(", %d bytes from %d with tag %d", bytes, status->MPI_SOURCE, status->MPI_TAG);
        printf(":");
        for (int i = 0; i < INTS; i++)
            printf(" %d", data[i]);
    }
    printf("\n");
}

static void fill(int data[INTS], int rank)
{
    for (int i = 0; i < INTS; i++)
        data[i] = 100 * rank + i;
}

/* Two ranks of a communicator of two or more, each with `INTS` numbers of its own. */
MPILAB_BCAST(exchanges)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    int rank, data[INTS];
    MPI_Comm_rank(comm, &rank);
    MPI_Datatype even, odd, wide;
    MPI_Type_vector(INTS / 2, 1, 2, MPI_INT, &even);
    MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){sizeof(int)}, even, &odd);
    MPI_Type_create_resized(even, 0, sizeof(int), &wide); /* its data reach beyond its extent */
    MPI_Type_commit(&even);
    MPI_Type_commit(&odd);
    MPI_Type_commit(&wide);
    const int other = rank < 2 ? 1 - rank : MPI_PROC_NULL;
    MPI_Status status;

    fill(data, rank);
    int error =
        MPI_Sendrecv(data, 1, even, other, 5, data, 1, odd, other, MPI_ANY_TAG, comm, &status);
    tell("in place", error, &status, data);
    fill(data, rank);
    error = MPI_Sendrecv(data, 1, even, rank, 6, data, 1, odd, rank, 6, comm, &status);
    tell("in place with oneself", error, &status, data);
    fill(data, rank);
    error = MPI_Sendrecv(data, 1, even, rank == 0 ? 1 : MPI_PROC_NULL, 7, data, 1, odd,
                         rank == 1 ? 0 : MPI_PROC_NULL, 7, comm, &status);
    tell("in place, one way", error, &status, data);
    error = MPI_Sendrecv(data, 1, even, 1000, 8, data, 1, odd, other, 8, comm, &status);
    tell("in place, to nobody", error, &status, data);
    fill(data, rank);
    error = MPI_Sendrecv(data, 2, MPI_INT, other, 9, data + 4, rank == 1 ? 1 : 2, MPI_INT, other, 9,
                         comm, &status);
    tell("too long for rank 1", error, &status, data);

    fill(data, rank);
    error = MPI_Sendrecv_replace(data, INTS, MPI_INT, other, 10, other, 10, comm, &status);
    tell("replaced", error, &status, data);
    fill(data, rank);
    error = MPI_Sendrecv_replace(data, 1, wide, other, 11, other, 11, comm, &status);
    tell("every second one replaced", error, &status, data);
    error = MPI_Sendrecv_replace(data, 0, MPI_INT, other, 12, other, 12, comm, &status);
    tell("nothing replaced", error, &status, data);

    MPI_Type_free(&wide);
    MPI_Type_free(&odd);
    return MPI_Type_free(&even);
}

/* The root asks for its receives until all are done; the last rank sends when the others' have long come. */
MPILAB_BCAST(asked_until_all_are_done)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    int rank, size, all = 0, error = MPI_SUCCESS, got[INTS];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank == size - 1)
        error = MPI_Recv(got, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
    if (rank > 0)
        return error == MPI_SUCCESS ? MPI_Send(&rank, 1, MPI_INT, 0, 100 + rank, comm) : error;
    MPI_Request requests[INTS];
    MPI_Status statuses[INTS];
    for (int other = 1; other < size; other++)
        MPI_Irecv(&got[other], 1, MPI_INT, other, MPI_ANY_TAG, comm, &requests[other]);
    for (int asked = 0; !all && error == MPI_SUCCESS; asked++) {
        error = MPI_Testall(size - 1, requests + 1, &all, statuses + 1);
        if (asked == 1000) /* now the last rank may send */
            MPI_Send(&rank, 1, MPI_INT, size - 1, 1, comm);
    }
    for (int other = 1; other < size; other++)
        printf("%d from %d with tag %d\n", got[other], statuses[other].MPI_SOURCE,
               statuses[other].MPI_TAG);
    return error;
}

enum { BASES = 5, WAYS = 10, FIELD = 256, MOST = 64 };

/* Types as the harness has: plain, with a hole, with a lower bound above 0 and below 0, backward. */
static void make_base(int number, MPI_Datatype *type)
{
    MPI_Datatype part;
    if (number == 0) {
        MPI_Type_dup(MPI_INT, type);
    } else if (number == 1) {
        MPI_Type_vector(2, 1, 2, MPI_INT, type);
    } else if (number == 4) {
        MPI_Type_vector(3, 1, -2, MPI_INT, type);
    } else {
        MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){number == 2 ? 12 : -4}, MPI_INT,
                                 &part);
        MPI_Type_create_resized(part, number == 2 ? 8 : -8, 16, type);
        MPI_Type_free(&part);
    }
}

static void make(int way, MPI_Datatype of, MPI_Datatype *type)
{
    const int lengths[] = {2, 1}, displs[] = {3, 1};
    const MPI_Aint places[] = {72, 8};
    MPI_Datatype twice;
    switch (way) {
    case 0:
        MPI_Type_contiguous(2, of, type);
        break;
    case 1:
        MPI_Type_vector(2, 2, 3, of, type);
        break;
    case 2:
        MPI_Type_vector(2, 1, -2, of, type);
        break;
    case 3:
        MPI_Type_create_hvector(2, 2, 64, of, type);
        break;
    case 4:
        MPI_Type_indexed(2, lengths, displs, of, type);
        break;
    case 5:
        MPI_Type_create_hindexed(2, lengths, places, of, type);
        break;
    case 6:
        MPI_Type_create_indexed_block(2, 2, displs, of, type);
        break;
    case 7:
        MPI_Type_create_hindexed_block(2, 1, places, of, type);
        break;
    case 8:
        MPI_Type_create_struct(2, lengths, places, (MPI_Datatype[]){of, of}, type);
        break;
    default:
        MPI_Type_contiguous(2, of, &twice);
        MPI_Type_create_hindexed(2, lengths, places, twice, type);
        MPI_Type_free(&twice);
    }
    MPI_Type_commit(type);
}

/* Each rank sends two elements of types that are made of others to itself, and gets two of them. */
MPILAB_BCAST(types_of_types)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    int rank, field[FIELD], flat[MOST], bytes;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < BASES * WAYS; i++) {
        MPI_Datatype base, type;
        MPI_Aint low, extent;
        make_base(i % BASES, &base);
        make(i / BASES, base, &type);
        MPI_Type_free(&base);
        MPI_Type_get_extent(type, &low, &extent);
        MPI_Type_size(type, &bytes);
        const int ints = 2 * bytes / (int)sizeof *flat;
        printf("%d of %d: bounds %d %d; sent", i / BASES, i % BASES, (int)low, (int)(low + extent));
        for (int at = 0; at < FIELD; at++)
            field[at] = at - FIELD / 2;
        MPI_Sendrecv(field + FIELD / 2, 2, type, rank, 1, flat, MOST, MPI_INT, rank, 1, comm,
                     MPI_STATUS_IGNORE);
        for (int at = 0; at < ints; at++)
            printf(" %d", flat[at]);
        for (int at = 0; at < ints; at++)
            flat[at] = 1000 + at;
        MPI_Sendrecv(flat, ints, MPI_INT, rank, 2, field + FIELD / 2, 2, type, rank, 2, comm,
                     MPI_STATUS_IGNORE);
        printf("; received");
        for (int at = 0; at < FIELD; at++)
            if (field[at] >= 1000)
                printf(" %d:%d", at - FIELD / 2, field[at]);
        printf("\n");
        MPI_Type_free(&type);
    }
    return MPI_SUCCESS;
}

/* Each rank moves a number from byte 4 to byte 12 of its own. */
MPILAB_BCAST(alone)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    int from[INTS] = {1, 2}, to[INTS] = {0};
    const int one = 1, sent = sizeof(int), received = 3 * sizeof(int);
    const MPI_Datatype type = MPI_INT;
    MPI_Request request;
    MPI_Alltoallw(from, &one, &sent, &type, to, &one, &received, &type, MPI_COMM_SELF);
    for (int i = 0; i < INTS; i++)
        printf(" %d", to[i]);
    to[3] = 0;
    MPI_Ialltoallw(from, &one, &sent, &type, to, &one, &received, &type, MPI_COMM_SELF, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, to, &one, &received, &type, MPI_COMM_SELF);
    for (int i = 0; i < INTS; i++)
        printf(" %d", to[i]);
    printf("\n");
    return MPI_SUCCESS;
}
