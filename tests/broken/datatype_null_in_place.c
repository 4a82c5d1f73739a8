/* Fault: blocks are sent as `sendtype`, which has no meaning with MPI_IN_PLACE.
 * Case: ranks=2 count=4 in_place
 * Diagnosis: mpi-error
 * Pattern: invalid datatype
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(datatype_null_in_place)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    void *own = block(recvbuf, rank, recvcount, recvtype);

    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int dest = (rank + step) % size, source = (rank - step + size) % size;
        void *to = block(recvbuf, source, recvcount, recvtype);
        err = MPI_Sendrecv(own, recvcount, sendtype, dest, TAG, /* <- ranks 0 1 */
                           to, recvcount, recvtype, source, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
