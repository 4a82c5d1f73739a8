/* Fault: with MPI_IN_PLACE the kernel calls itself, again with MPI_IN_PLACE.
 * Case: ranks=2 count=4 in_place
 * Diagnosis: crash
 * Pattern: stack exhausted
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLGATHER(calls_itself_in_place);
MPILAB_ALLGATHER(calls_itself_in_place) /* <- or here */
{ /* <- or here */
    /* In place: my block is in the receive buffer, so take it from there. */
    if (sendbuf == MPI_IN_PLACE)
        return allgather_calls_itself_in_place(sendbuf, recvcount, recvtype, /* <- */
                                               recvbuf, recvcount, recvtype, comm);

    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 1; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Sendrecv(block(recvbuf, (rank - i + 1 + size) % size, recvcount, recvtype),
                           recvcount, recvtype, right, TAG,
                           block(recvbuf, (rank - i + size) % size, recvcount, recvtype), recvcount,
                           recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
