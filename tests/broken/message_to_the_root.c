/* Fault: after the broadcast all others report to rank 0, which does not listen.
 * Case: ranks=3 count=4
 * Diagnosis: leak
 * Pattern: unexpected message
 * Ranks: 1 2
 */
#include "mpilab.h"

MPILAB_ALLGATHER(message_to_the_root)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);

    const int done = 1;
    if (rank != 0)
        MPI_Send(&done, 1, MPI_INT, 0, TAG + 1, comm); /* <- ranks 1 2 */
    return err;
}
