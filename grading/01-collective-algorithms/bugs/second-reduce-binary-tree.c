%%kernel reduce_binomial
// Fault: right, but up a binary tree. (The order is kept by a linear reduction.)
#include "mpilab.h"
#include <stdlib.h>

int reduce_binomial(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype,
                    MPI_Op op, int root, MPI_Comm comm)
{
    int rank, size, commutes;
    MPI_Aint true_lower, true_extent, lower, stride;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Op_commutative(op, &commutes);
    MPI_Type_get_true_extent(datatype, &true_lower, &true_extent);
    MPI_Type_get_extent(datatype, &lower, &stride);
    const size_t bytes = (size_t)(count * stride + true_extent + 1);
    char *const memory[2] = {malloc(bytes), malloc(bytes)};
    void *const partial = memory[0] - true_lower, *const incoming = memory[1] - true_lower;
    const int place = (rank - root + size) % size;
    const void *const own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;

    int err = MPI_SUCCESS;
    if (commutes) {
        err = copy_local(own, count, datatype, partial, count, datatype);
        for (int child = 2 * place + 1; child <= 2 * place + 2 && err == MPI_SUCCESS; child++)
            if (child < size) {
                err = MPI_Recv(incoming, count, datatype, (child + root) % size, TAG, comm,
                               MPI_STATUS_IGNORE);
                if (err == MPI_SUCCESS)
                    err = MPI_Reduce_local(incoming, partial, count, datatype, op);
            }
        if (err == MPI_SUCCESS && place > 0)
            err = MPI_Send(partial, count, datatype, ((place - 1) / 2 + root) % size, TAG, comm);
    } else if (rank != root) {
        err = MPI_Send(own, count, datatype, root, TAG, comm);
    } else {
        for (int source = size - 1; source >= 0 && err == MPI_SUCCESS; source--) {
            void *const to = source == size - 1 ? partial : incoming;
            err = source == rank ? copy_local(own, count, datatype, to, count, datatype)
                                 : MPI_Recv(to, count, datatype, source, TAG, comm,
                                            MPI_STATUS_IGNORE);
            if (err == MPI_SUCCESS && to == incoming)
                err = MPI_Reduce_local(incoming, partial, count, datatype, op);
        }
    }
    if (err == MPI_SUCCESS && rank == root)
        err = copy_local(partial, count, datatype, recvbuf, count, datatype);
    free(memory[0]);
    free(memory[1]);
    return err;
}
