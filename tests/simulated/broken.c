/* Kernels with one mistake each, and one that tells where it is: for the tests of simulated runs. */
#include "mpilab.h"
#include <stdio.h>
#include <stdlib.h>

static int rank_of(MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

MPILAB_BCAST(head_to_head)
{
    (void)root;
    const int rank = rank_of(comm);
    if (rank > 1)
        return MPI_SUCCESS;
    return MPI_Recv(buffer, count, datatype, 1 - rank, TAG, comm, MPI_STATUS_IGNORE); /* deadlock */
}

MPILAB_BCAST(truncated)
{
    (void)root;
    if (rank_of(comm) == 0)
        return MPI_Send(buffer, count, datatype, 1, TAG, comm);
    if (rank_of(comm) == 1)
        return MPI_Recv(buffer, count - 1, datatype, 0, TAG, comm, MPI_STATUS_IGNORE); /* short */
    return MPI_SUCCESS;
}

MPILAB_BCAST(null_pointer)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    if (rank_of(comm) == 2)
        *(volatile int *)NULL = 1; /* crash */
    return MPI_Barrier(comm);
}

MPILAB_BCAST(left)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    if (rank_of(comm) == 1)
        exit(3); /* exit */
    return MPI_Barrier(comm);
}

MPILAB_BCAST(endless)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    if (rank_of(comm) == 1)
        for (volatile int i = 0;; i++) /* endless */
            ;
    return MPI_Barrier(comm);
}

/* Progress without end. */
MPILAB_BCAST(talks)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    const int rank = rank_of(comm);
    for (int sent = 0, received = 0;; sent++)
        MPI_Sendrecv(&sent, 1, MPI_INT, rank, 3, &received, 1, MPI_INT, rank, 3, comm,
                     MPI_STATUS_IGNORE);
}

MPILAB_BCAST(buffered)
{
    (void)root;
    const int partner = rank_of(comm) ^ 1;
    MPI_Send(buffer, count, datatype, partner, TAG, comm); /* relies on buffering */
    return MPI_Recv(buffer, count, datatype, partner, TAG, comm, MPI_STATUS_IGNORE);
}

MPILAB_BCAST(silent)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}

MPILAB_BCAST(refuses)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    return rank_of(comm) == 1 ? MPI_ERR_ROOT : MPI_SUCCESS;
}

/* Each rank prints its host, its group and how many ranks of `comm` share its node. */
MPILAB_BCAST(where)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    char name[MPI_MAX_PROCESSOR_NAME];
    int length, sharing;
    MPI_Comm node;
    MPI_Get_processor_name(name, &length);
    const int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &sharing);
    printf("%s %s %d\n", name, mpilab_place()->group, sharing);
    MPI_Comm_free(&node);
    return err;
}
