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
