/* Fault: each rank probes for as many messages as there are ranks; one fewer is sent to it.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: polling in vain
 * Ranks: 0 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(probes_for_one_too_many)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++)
        err = MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype,
                       (rank + step) % size, TAG, comm);

    /* Take the blocks in the order in which they come. */
    int received = 0;
    while (received < size && err == MPI_SUCCESS) {
        int flag;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, comm, &flag, &status); /* <- ranks 0 1 2 */
        if (!flag)
            continue;
        void *to = block(recvbuf, status.MPI_SOURCE, recvcount, recvtype);
        err = MPI_Recv(to, recvcount, recvtype, status.MPI_SOURCE, TAG, comm, MPI_STATUS_IGNORE);
        received++;
    }
    return err;
}
