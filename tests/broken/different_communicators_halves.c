/* Fault: ranks 0 and 1 meet in a barrier of all, ranks 2 and 3 in the barriers of their halves.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: different communicators
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLGATHER(different_communicators_halves)
{
    int rank, size, in_half;
    MPI_Comm half;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_split(comm, rank % 2, rank, &half);
    MPI_Comm_rank(half, &in_half);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    /* The leaders of the halves take care of all ranks, the others of their half. */
    if (in_half == 0)
        MPI_Barrier(comm); /* <- ranks 0 1 */
    else
        MPI_Barrier(half); /* <- ranks 2 3 */

    int err = MPI_SUCCESS;
    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);
    MPI_Comm_free(&half);
    return err;
}
