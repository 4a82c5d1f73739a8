/* Fault: MPI_IN_PLACE is taken for the address of a buffer and copied from.
 * Case: ranks=2 count=4 in_place
 * Diagnosis: crash
 * Pattern: MPI_IN_PLACE used as an address
 * Ranks: any
 */
#include "mpilab.h"
#include <string.h>

int allgather_in_place_as_an_address(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                     void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                     MPI_Comm comm)
{
    int rank, size, element;
    (void)sendcount, (void)sendtype;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_size(recvtype, &element);

    void *own = block(recvbuf, rank, recvcount, recvtype);
    memcpy(own, sendbuf, (size_t)recvcount * (size_t)element); /* <- */

    for (int step = 1; step < size; step++) {
        int source = (rank - step + size) % size;
        MPI_Sendrecv(own, recvcount, recvtype, (rank + step) % size, TAG,
                     block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source, TAG,
                     comm, MPI_STATUS_IGNORE);
    }
    return MPI_SUCCESS;
}
