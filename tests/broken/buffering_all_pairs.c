/* Fault: each rank sends its block to all others before it receives any of theirs.
 * Case: ranks=3 count=16 strict
 * Diagnosis: deadlock
 * Pattern: sends that rely on buffering
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(buffering_all_pairs)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size;
        err = MPI_Send(own, recvcount, recvtype, dest, TAG, comm); /* <- ranks 0 1 2 */
    }
    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int source = (rank - step + size) % size;
        err = MPI_Recv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source,
                       TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
