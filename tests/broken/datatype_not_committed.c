/* Fault: a new datatype is used without MPI_Type_commit.
 * Case: ranks=2 count=4
 * Diagnosis: mpi-error
 * Pattern: invalid datatype
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_datatype_not_committed(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                     void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                     MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;

    MPI_Datatype whole;
    MPI_Type_contiguous(recvcount, recvtype, &whole);
    for (int round = 0; round < size - 1 && err == MPI_SUCCESS; round++) {
        void *out = block(recvbuf, (rank - round + size) % size, 1, whole);
        void *in = block(recvbuf, (rank - round - 1 + size) % size, 1, whole);
        err = MPI_Sendrecv(out, 1, whole, right, TAG, in, 1, whole, left, TAG, /* <- ranks 0 1 */
                           comm, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&whole);
    return err;
}
