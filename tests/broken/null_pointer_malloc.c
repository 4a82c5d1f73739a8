/* Fault: rank 0 asks malloc for a negative size, gets NULL and does not look.
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Pattern: a negative size
 * Ranks: 0
 */
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>

int allgather_null_pointer_malloc(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                  MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int err = MPI_SUCCESS;
    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);

    /* Keep the blocks of the ranks before me, to look at them. */
    const int others = rank - 1;
    int *kept = malloc(others * recvcount * sizeof(int)); /* <- rank 0 */
    const int *blocks = recvbuf;
    for (int i = 0; i < recvcount; i++)
        kept[i] = blocks[i];
    if (memcmp(kept, blocks, (size_t)recvcount * sizeof(int)) != 0)
        err = MPI_ERR_OTHER;
    free(kept);
    return err;
}
