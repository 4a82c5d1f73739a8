/* Fault: blocks are broadcast in pairs; with an odd number of ranks the last one is left out.
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: blocks never written
 * Ranks: 0 1
 */
#include "mpilab.h"

int allgather_last_block_missing(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int pair = 0; pair < size / 2 && err == MPI_SUCCESS; pair++) {
        MPI_Request requests[2];
        for (int i = 0; i < 2; i++)
            MPI_Ibcast(block(recvbuf, 2 * pair + i, recvcount, recvtype), recvcount, recvtype,
                       2 * pair + i, comm, &requests[i]);
        err = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    return err;
}
