%%kernel scatter_binomial
// Fault: blocks that follow the root's own are taken by rank, not counted from the root.
#include "mpilab.h"
#include <stdlib.h>

int scatter_binomial(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int rank, size, distance = 1, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int place = (rank - root + size) % size;
    const int is_root = place == 0;
    const int count = is_root ? sendcount : recvcount;
    const MPI_Datatype type = is_root ? sendtype : recvtype;
    while (distance < size && (place & distance) == 0)
        distance *= 2;
    const int mine = distance < size - place ? distance : size - place;

    MPI_Aint lower, extent, lower_bound, stride;
    MPI_Type_get_true_extent(type, &lower, &extent);
    MPI_Type_get_extent(type, &lower_bound, &stride);
    char *const memory = malloc((size_t)(mine * (long)count * stride + extent + 1));
    const void *blocks = is_root ? sendbuf : memory - lower;
    if (!is_root)
        err = MPI_Recv(memory - lower, mine * count, type, (place - distance + root) % size, TAG,
                       comm, MPI_STATUS_IGNORE);
    for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2) {
        const int length = distance < mine - distance ? distance : mine - distance;
        if (length > 0)
            err = MPI_Send(block(blocks, distance, count, type), length * count, type,
                           (place + distance + root) % size, TAG, comm);
    }
    if (err == MPI_SUCCESS && is_root)
        err = take_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, 0);
    else if (err == MPI_SUCCESS)
        err = copy_local(blocks, count, type, recvbuf, recvcount, recvtype);
    free(memory);
    return err;
}
