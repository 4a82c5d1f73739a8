/* Fault: rank 2 looks for a partner that exists and never finds one.
 * Case: ranks=3 count=4
 * Diagnosis: time-out
 * Pattern: an endless loop
 * Ranks: 2
 */
#include "mpilab.h"

int allgather_endless_on_one_rank(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                  MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int partner = rank ^ 1;
    while (partner >= size) partner = (partner + 4) ^ 4; /* <- rank 2 */

    if (partner != rank && err == MPI_SUCCESS)
        err = MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, partner,
                           TAG, block(recvbuf, partner, recvcount, recvtype), recvcount, recvtype,
                           partner, TAG, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);
    return err;
}
