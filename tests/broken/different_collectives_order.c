/* Fault: rank 0 gathers, then broadcasts; all others have the two calls the other way round.
 * Case: ranks=3 count=4
 * Diagnosis: deadlock
 * Pattern: different collectives
 * Ranks: any
 */
#include "mpilab.h"

int allgather_different_collectives_order(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                          void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                          MPI_Comm comm)
{
    int rank, size, err;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);
    const int all = size * recvcount;

    if (rank == 0) {
        err = MPI_Gather(MPI_IN_PLACE, 0, recvtype, recvbuf, recvcount, recvtype, /* <- rank 0 */
                         0, comm);
        MPI_Bcast(recvbuf, all, recvtype, 0, comm);
    } else {
        MPI_Bcast(recvbuf, all, recvtype, 0, comm); /* <- ranks 1 2 */
        err = MPI_Gather(own, recvcount, recvtype, NULL, 0, recvtype, 0, comm);
    }
    return err;
}
