/* Fault: a rank that has no partner leaves the whole program with exit(1).
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Pattern: exit() was called
 * Ranks: 2
 */
#include "mpilab.h"
#include <stdio.h>
#include <stdlib.h>

int allgather_exits(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    const int partner = rank % 2 == 0 ? rank + 1 : rank - 1;
    if (partner >= size) {
        printf("rank %d has no partner\n", rank);
        exit(1); /* <- rank 2 */
    }
    if (err == MPI_SUCCESS)
        err = MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, partner,
                           TAG, block(recvbuf, partner, recvcount, recvtype), recvcount, recvtype,
                           partner, TAG, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);
    return err;
}
