/* Fault: odd ranks call MPI_Barrier while the even ones call MPI_Bcast.
 * Case: ranks=4 count=4
 * Diagnosis: deadlock
 * Pattern: different collectives
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_ALLGATHER(different_collectives_barrier)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int root = size - 1; root >= 0 && err == MPI_SUCCESS; root--) {
        void *whose = block(recvbuf, root, recvcount, recvtype);
        if (rank % 2 == 1)
            MPI_Barrier(comm); /* odd ranks let the even ones go first */ /* <- ranks 1 3 */
        err = MPI_Bcast(whose, recvcount, recvtype, root, comm); /* <- ranks 0 2 */
    }
    return err;
}
