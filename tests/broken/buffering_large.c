/* Fault: everybody sends first; blocks of 400 kB are not buffered, so MPI_Send waits for a receive.
 * Case: ranks=4 count=100000
 * Diagnosis: deadlock
 * Pattern: sends that rely on buffering
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

int allgather_buffering_large(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                              void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;

    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        void *outgoing = block(recvbuf, (rank - round + 1 + size) % size, recvcount, recvtype);
        void *incoming = block(recvbuf, (rank - round + size) % size, recvcount, recvtype);
        err = MPI_Send(outgoing, recvcount, recvtype, right, TAG, comm); /* <- ranks 0 1 2 3 */
        if (err == MPI_SUCCESS)
            err = MPI_Recv(incoming, recvcount, recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
