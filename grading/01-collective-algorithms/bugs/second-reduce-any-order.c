%%kernel reduce_binomial
// Fault: takes for granted that the operation commutes.
#include "mpilab.h"
#include <stdlib.h>

int reduce_binomial(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype,
                    MPI_Op op, int root, MPI_Comm comm)
{
    int rank, size, distance = 1;
    MPI_Aint lower, extent;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_get_true_extent(datatype, &lower, &extent);
    MPI_Aint lower_bound, stride;
    MPI_Type_get_extent(datatype, &lower_bound, &stride);
    const size_t bytes = (size_t)(count * stride + extent + 1);
    char *const memory[2] = {malloc(bytes), malloc(bytes)};
    void *const partial = memory[0] - lower, *const incoming = memory[1] - lower;
    const int place = (rank - root + size) % size;

    int err = copy_local(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count, datatype, partial,
                         count, datatype);
    for (; distance < size && (place & distance) == 0 && err == MPI_SUCCESS; distance *= 2)
        if (place + distance < size) {
            err = MPI_Recv(incoming, count, datatype, (place + distance + root) % size, TAG, comm,
                           MPI_STATUS_IGNORE);
            if (err == MPI_SUCCESS)
                err = MPI_Reduce_local(incoming, partial, count, datatype, op);
        }
    if (err == MPI_SUCCESS && place > 0)
        err = MPI_Send(partial, count, datatype, (place - distance + root) % size, TAG, comm);
    else if (err == MPI_SUCCESS)
        err = copy_local(partial, count, datatype, recvbuf, count, datatype);
    free(memory[0]);
    free(memory[1]);
    return err;
}
