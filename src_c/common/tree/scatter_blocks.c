/* Cut a message into blocks and scatter them along a binomial tree; allgather them again. */
#include "blocks.h"

int mpilab_scatter_blocks(void *buffer, int count, MPI_Datatype datatype, int parts, int root,
                          MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;
    if (virtual_rank >= parts)
        return MPI_SUCCESS;

    int err = MPI_SUCCESS, distance = 1;
    while (distance < parts && (virtual_rank & distance) == 0)
        distance *= 2;
    if (virtual_rank > 0) {
        const int last = virtual_rank + mpilab_binomial_subtree(virtual_rank, parts) - 1;
        const struct mpilab_window mine = mpilab_window(virtual_rank, last, parts, count);
        err = MPI_Recv(block(buffer, mine.begin, 1, datatype), mine.length, datatype,
                       (virtual_rank - distance + root) % size, TAG, comm, MPI_STATUS_IGNORE);
    }
    for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2) {
        const int child = virtual_rank + distance;
        if (child >= parts)
            continue;
        const int last = child + mpilab_binomial_subtree(child, parts) - 1;
        const struct mpilab_window theirs = mpilab_window(child, last, parts, count);
        err = MPI_Send(block(buffer, theirs.begin, 1, datatype), theirs.length, datatype,
                       (child + root) % size, TAG, comm);
    }
    return err;
}

int mpilab_double_blocks(void *buffer, int count, MPI_Datatype datatype, int core, int root,
                         MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;

    int err = MPI_SUCCESS;
    for (int distance = 1; virtual_rank < core && distance < core && err == MPI_SUCCESS;
         distance *= 2) {
        const int partner = virtual_rank ^ distance;
        const int mine = virtual_rank / distance * distance;
        const int theirs = partner / distance * distance;
        const struct mpilab_window out = mpilab_window(mine, mine + distance - 1, core, count);
        const struct mpilab_window in = mpilab_window(theirs, theirs + distance - 1, core, count);
        const int other = (partner + root) % size;
        err = MPI_Sendrecv(block(buffer, out.begin, 1, datatype), out.length, datatype, other, TAG,
                           block(buffer, in.begin, 1, datatype), in.length, datatype, other, TAG,
                           comm, MPI_STATUS_IGNORE);
    }
    return err;
}
