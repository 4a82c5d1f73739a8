/* Fault: divides by the rank, which is 0 on rank 0.
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Pattern: division by zero
 * Ranks: 0
 */
#include "mpilab.h"

int allgather_division_by_rank(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    /* Every rank-th rank is a leader, and leaders go first. */
    const int leaders = size / rank; /* <- rank 0 */
    for (int i = 0; i < size && err == MPI_SUCCESS; i++) {
        const int root = leaders > size ? size - 1 - i : i;
        void *whose = block(recvbuf, root, recvcount, recvtype);
        err = MPI_Bcast(whose, recvcount, recvtype, root, comm);
    }
    return err;
}
