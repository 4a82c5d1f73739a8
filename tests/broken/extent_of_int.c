/* Fault: block addresses are counted in ints, whatever the datatype is.
 * Case: ranks=2 count=3 datatype=contiguous
 * Diagnosis: wrong-result
 * Ranks: 0 1
 */
#include "mpilab.h"

MPILAB_ALLGATHER(extent_of_int)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *blocks = recvbuf;

    for (int other = 0; other < size && err == MPI_SUCCESS; other++) {
        int *to = &blocks[other * recvcount];
        if (other == rank)
            err = copy_local(sendbuf, sendcount, sendtype, to, recvcount, recvtype);
        else
            err = MPI_Sendrecv(sendbuf, sendcount, sendtype, other, TAG, to, recvcount, recvtype,
                               other, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
