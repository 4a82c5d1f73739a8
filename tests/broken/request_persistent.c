/* Fault: the persistent requests of the ring are never freed with MPI_Request_free.
 * Case: ranks=2 count=4
 * Diagnosis: leak
 * Pattern: request leaked
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(request_persistent)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        void *to = block(recvbuf, source, recvcount, recvtype);
        MPI_Request pair[2];
        MPI_Recv_init(to, recvcount, recvtype, source, TAG, comm, &pair[0]); /* <- ranks 0 1 */
        MPI_Send_init(own, recvcount, recvtype, dest, TAG, comm, &pair[1]);  /* <- ranks 0 1 */
        MPI_Startall(2, pair);
        err = MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    }
    return err;
}
