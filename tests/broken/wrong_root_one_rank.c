/* Fault: the last rank takes itself for the root of MPI_Gather; for all others that is rank 0.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: wrong root
 * Ranks: 0 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(wrong_root_one_rank)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    int collector = 0;
    if (rank == size - 1)
        collector = rank; /* the last one has the most time */
    const void *from = rank == collector ? MPI_IN_PLACE : own;

    MPI_Gather(from, recvcount, recvtype, recvbuf, recvcount, recvtype, collector, comm); /* <- */
    return MPI_Bcast(recvbuf, size * recvcount, recvtype, collector, comm);
}
