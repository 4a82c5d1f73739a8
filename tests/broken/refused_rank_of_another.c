/* Fault: a rank of comm is used on the communicator of its own half, which has fewer.
 * Case: ranks=4 count=4
 * Diagnosis: mpi-error
 * Pattern: a rank that does not exist
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(refused_rank_of_another)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Comm half;
    MPI_Comm_split(comm, rank < size / 2 ? 0 : 1, rank, &half); /* <- */
    int first = rank < size / 2 ? 0 : size / 2;
    int other = rank < size / 2 ? rank + size / 2 : rank - size / 2;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, block(recvbuf, first, recvcount, recvtype),
                  recvcount, recvtype, half);
    if (rank < size / 2)
        MPI_Send(block(recvbuf, first, recvcount, recvtype), /* <- ranks 0 1 */
                 size / 2 * recvcount, recvtype, other, TAG, half);
    else
        MPI_Recv(recvbuf, size / 2 * recvcount, recvtype, other, TAG, half, MPI_STATUS_IGNORE);
    MPI_Comm_free(&half);
    return err;
}
