/* Fault: each rank names itself as the root; so little data is sent that nobody waits for long.
 * Case: ranks=4 count=4
 * Diagnosis: wrong-result
 * Pattern: wrong root
 * Ranks: 0 1 2 3
 */
#include "mpilab.h"

MPILAB_ALLGATHER(collective_wrong_root_short)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int i = 0; i < size && err == MPI_SUCCESS; i++) {
        void *whose = block(recvbuf, i, recvcount, recvtype);
        err = MPI_Bcast(whose, recvcount, recvtype, rank, comm); /* <- ranks 0 1 2 3 */
    }
    return err;
}
