/* Fault: the blocks are taken out of a buffer of its own before MPI_Irecv is done.
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: a request never completed
 * Ranks: 0 1 2
 */
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>

int allgather_unwaited_copied_too_early(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                        void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                        MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    MPI_Aint lb, extent;
    MPI_Type_get_extent(recvtype, &lb, &extent);
    char *came = calloc(size, recvcount * extent);
    MPI_Request requests[size];
    for (int i = 0; i < size; i++)
        if (i != rank)
            MPI_Irecv(block(came, i, recvcount, recvtype), recvcount, recvtype, /* <- ranks 0 1 2 */
                      i, TAG, comm, &requests[i]);
    for (int i = 0; i < size; i++)
        if (i != rank)
            memcpy(block(recvbuf, i, recvcount, recvtype), block(came, i, recvcount, recvtype),
                   recvcount * extent);

    MPI_Barrier(comm);
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        if (i != rank)
            err = MPI_Send(sendbuf, sendcount, sendtype, i, TAG, comm);
    return err;
}
