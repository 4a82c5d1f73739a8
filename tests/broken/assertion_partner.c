/* Fault: asserts that every rank has a partner; with three ranks the last one has none.
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Pattern: an assertion failed
 * Ranks: 2
 */
#include "mpilab.h"
#include <assert.h>

int allgather_assertion_partner(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    const int partner = rank ^ 1;
    assert(partner < size); /* <- rank 2 */
    if (err == MPI_SUCCESS)
        err = MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, partner,
                           TAG, block(recvbuf, partner, recvcount, recvtype), recvcount, recvtype,
                           partner, TAG, comm, MPI_STATUS_IGNORE);
    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);
    return err;
}
