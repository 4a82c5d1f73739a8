/* Fault: the send buffer is used to pass the blocks on, and is changed by that.
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: send buffer changed
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(sendbuf_as_scratch)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;

    void *travelling = (void *)sendbuf;
    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int whose = (rank - round + size) % size;
        err = MPI_Sendrecv_replace(travelling, sendcount, sendtype, right, TAG, left, TAG, comm,
                                   MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = copy_local(travelling, sendcount, sendtype,
                             block(recvbuf, whose, recvcount, recvtype), recvcount, recvtype);
    }
    return err;
}
