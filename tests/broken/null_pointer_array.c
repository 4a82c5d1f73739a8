/* Fault: the array of requests is declared, but on odd ranks it is never allocated.
 * Case: ranks=2 count=4
 * Diagnosis: crash
 * Pattern: a null pointer
 * Ranks: 1
 */
#include "mpilab.h"
#include <stdlib.h>

static int *order_of(int rank, int size)
{
    int *order = NULL;
    if (rank % 2 == 0)
        order = malloc((size_t)size * sizeof *order);
    return order;
}

MPILAB_ALLGATHER(null_pointer_array)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int *order = order_of(rank, size);
    for (int i = 0; i < size; i++)
        order[i] = (i * 3) % size; /* <- rank 1 */
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Bcast(block(recvbuf, order[i], recvcount, recvtype), recvcount, recvtype,
                        order[i], comm);
    free(order);
    return err;
}
