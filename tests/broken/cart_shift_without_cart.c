/* Fault: asks for the neighbors in a ring that was never made with MPI_Cart_create.
 * Case: ranks=3 count=4
 * Diagnosis: mpi-error
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_cart_shift_without_cart(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                      void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                      MPI_Comm comm)
{
    int rank, size, left, right;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    if (err == MPI_SUCCESS)
        err = MPI_Cart_shift(comm, 0, 1, &left, &right); /* <- ranks 0 1 2 */
    for (int round = 1; round < size && err == MPI_SUCCESS; round++)
        err = MPI_Sendrecv(block(recvbuf, (rank - round + 1 + size) % size, recvcount, recvtype),
                           recvcount, recvtype, right, TAG,
                           block(recvbuf, (rank - round + size) % size, recvcount, recvtype),
                           recvcount, recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
