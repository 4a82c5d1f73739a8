/* Fault: ranks are counted in groups of four; with fewer than four ranks there are 0 groups.
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Pattern: division by zero
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLGATHER(division_by_groups)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    const int groups = size / 4;
    const int my_group = rank % groups; /* <- */
    MPI_Comm group;
    MPI_Comm_split(comm, my_group, rank, &group);
    MPI_Barrier(group);
    MPI_Comm_free(&group);
    int err = MPI_SUCCESS;
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);
    return err;
}
