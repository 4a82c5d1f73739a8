/* MPI calls that go wrong: linked into mpilab-osu, each spoils the last byte of a result of 4 bytes
 * or more, on one rank: a number, where numbers of MPI_FLOAT are added. What the program itself sums
 * up (MPI_INT, MPI_DOUBLE) stays right. */
#include <mpi.h>

static void spoil(void *buffer, int count, int index, MPI_Datatype type)
{
    if ((type == MPI_CHAR || type == MPI_BYTE) && count >= 4)
        ((unsigned char *)buffer)[(long)count * (index + 1) - 1] ^= 1;
    if (type == MPI_FLOAT && count >= 1)
        ((float *)buffer)[count - 1] += 1;
}

static int is_last(MPI_Comm comm, int *last)
{
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    *last = size - 1;
    return rank == size - 1;
}

static int is_first(MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank == 0;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int last, err = PMPI_Bcast(buffer, count, type, root, comm);
    if (is_last(comm, &last))
        spoil(buffer, count, 0, type);
    return err;
}

int MPI_Gather(const void *send, int sendcount, MPI_Datatype sendtype, void *recv, int count,
               MPI_Datatype type, int root, MPI_Comm comm)
{
    int last, err = PMPI_Gather(send, sendcount, sendtype, recv, count, type, root, comm);
    is_last(comm, &last);
    if (is_first(comm))
        spoil(recv, count, last, type);
    return err;
}

int MPI_Scatter(const void *send, int sendcount, MPI_Datatype sendtype, void *recv, int count,
                MPI_Datatype type, int root, MPI_Comm comm)
{
    int last, err = PMPI_Scatter(send, sendcount, sendtype, recv, count, type, root, comm);
    if (is_last(comm, &last))
        spoil(recv, count, 0, type);
    return err;
}

int MPI_Allgather(const void *send, int sendcount, MPI_Datatype sendtype, void *recv, int count,
                  MPI_Datatype type, MPI_Comm comm)
{
    int last, err = PMPI_Allgather(send, sendcount, sendtype, recv, count, type, comm);
    if (is_last(comm, &last))
        spoil(recv, count, 1, type);
    return err;
}

int MPI_Alltoallv(const void *send, const int sendcounts[], const int sendplaces[],
                  MPI_Datatype sendtype, void *recv, const int counts[], const int places[],
                  MPI_Datatype type, MPI_Comm comm)
{
    int last, err = PMPI_Alltoallv(send, sendcounts, sendplaces, sendtype, recv, counts, places,
                                   type, comm);
    if (is_last(comm, &last))
        spoil(recv, counts[0], 1, type);
    return err;
}

int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    int err = PMPI_Reduce(send, recv, count, type, op, root, comm);
    if (is_first(comm))
        spoil(recv, count, 0, type);
    return err;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    int last, err = PMPI_Allreduce(send, recv, count, type, op, comm);
    if (is_last(comm, &last))
        spoil(recv, count, 0, type);
    return err;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    int last, err = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    if (is_last(comm, &last))
        spoil(buffer, count, 0, type);
    return err;
}

static void *window;
static int window_count;

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    window = buffer;
    window_count = count;
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int err = PMPI_Waitall(count, requests, statuses);
    if (window)
        spoil(window, window_count, 0, MPI_CHAR);
    return err;
}
