%%kernel reduce_binomial
// Fault: adds up in the receive buffer, which nobody has filled with this rank's contribution; with
// MPI_IN_PLACE it is there.
#include "mpilab.h"
#include <stdlib.h>

int reduce_binomial(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype,
                    MPI_Op op, int root, MPI_Comm comm)
{
    int rank, size, commutes, distance = 1;
    MPI_Aint lower, extent, lower_bound, stride;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Op_commutative(op, &commutes);
    MPI_Type_get_true_extent(datatype, &lower, &extent);
    MPI_Type_get_extent(datatype, &lower_bound, &stride);
    const size_t bytes = (size_t)(count * stride + extent + 1);
    char *const memory[2] = {malloc(bytes), malloc(bytes)};
    const int top = commutes ? root : 0;
    const int place = (rank - top + size) % size;
    void *partial = rank == root ? recvbuf : memory[0] - lower, *incoming = memory[1] - lower;

    int err = MPI_SUCCESS;
    if (rank != root)
        err = copy_local(sendbuf, count, datatype, partial, count, datatype);
    for (; distance < size && (place & distance) == 0 && err == MPI_SUCCESS; distance *= 2) {
        if (place + distance >= size)
            continue;
        err = MPI_Recv(incoming, count, datatype, (rank + distance) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(partial, incoming, count, datatype, op);
        void *const result = incoming;
        incoming = partial;
        partial = result;
    }
    if (place > 0 && err == MPI_SUCCESS)
        err = MPI_Send(partial, count, datatype, (rank - distance + size) % size, TAG, comm);
    if (rank == top && rank != root && err == MPI_SUCCESS)
        err = MPI_Send(partial, count, datatype, root, TAG, comm);
    else if (rank == root && rank != top && err == MPI_SUCCESS)
        err = MPI_Recv(recvbuf, count, datatype, top, TAG, comm, MPI_STATUS_IGNORE);
    else if (rank == root && partial != recvbuf && err == MPI_SUCCESS)
        err = copy_local(partial, count, datatype, recvbuf, count, datatype);
    free(memory[0]);
    free(memory[1]);
    return err;
}
