/* Fault: each rank names itself as the root of MPI_Gather, as if all could gather at the same time.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: wrong root
 * Ranks: 0 1 2
 */
#include "mpilab.h"

int allgather_wrong_root_gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);

    /* Everybody gathers the blocks of all. */
    if (sendbuf == MPI_IN_PLACE) {
        sendbuf = block(recvbuf, rank, recvcount, recvtype);
        sendcount = recvcount;
        sendtype = recvtype;
    }
    return MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, /* <- */
                      rank, comm);
}
