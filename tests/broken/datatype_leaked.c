/* Fault: a new datatype is made in every round and never freed.
 * Case: ranks=3 count=4
 * Diagnosis: leak
 * Pattern: datatype leaked
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(datatype_leaked)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;

    for (int round = 0; round < size - 1 && err == MPI_SUCCESS; round++) {
        MPI_Datatype whole;
        MPI_Type_contiguous(recvcount, recvtype, &whole); /* <- ranks 0 1 2 */
        MPI_Type_commit(&whole);
        void *out = block(recvbuf, (rank - round + size) % size, 1, whole);
        void *in = block(recvbuf, (rank - round - 1 + size) % size, 1, whole);
        err = MPI_Sendrecv(out, 1, whole, right, TAG, in, 1, whole, left, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    return err;
}
