/* Fault: an address is kept in an int, which has room for half of it.
 * Case: ranks=2 count=4
 * Diagnosis: crash
 * Pattern: memory that is not yours
 * Ranks: any
 */
#include "mpilab.h"
#include <string.h>

MPILAB_ALLGATHER(wild_pointer_truncated)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (sendbuf == MPI_IN_PLACE || sendtype == MPI_DATATYPE_NULL)
        return MPI_ERR_ARG;

    int bytes;
    MPI_Type_size(sendtype, &bytes);
    bytes *= sendcount;
    int address = (int)(long)recvbuf + rank * bytes;
    memcpy((char *)(long)address, sendbuf, (size_t)bytes); /* <- */

    int err = MPI_SUCCESS;
    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);
    return err;
}
