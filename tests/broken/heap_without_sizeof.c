/* Fault: malloc counts bytes; without sizeof the array has room for a quarter of its elements.
 * Case: ranks=4 count=400
 * Diagnosis: crash
 * Pattern: heap corrupted
 * Ranks: any
 */
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>

int allgather_heap_without_sizeof(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                  MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);

    /* Put the blocks in order, own block first, for a check. */
    int *sorted = malloc((size_t)(size * recvcount));
    int *given = malloc((size_t)(size * recvcount) * sizeof(int)); /* so the heap goes on behind it */
    memcpy(given, recvbuf, (size_t)(size * recvcount) * sizeof(int));
    const size_t before = (size_t)(rank * recvcount), after = (size_t)((size - rank) * recvcount);
    memcpy(sorted, given + before, after * sizeof(int));
    memcpy(sorted + after, given, before * sizeof(int));
    if (sorted[0] != given[before])
        err = MPI_ERR_OTHER;
    free(sorted); /* <- */
    free(given);
    return err;
}
