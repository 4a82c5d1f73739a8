/* Fault: a rank takes its parent's virtual rank for a rank.
 * Collective: bcast
 * Case: ranks=4 count=4 root=1
 * Diagnosis: deadlock
 * Pattern: a receive from the wrong rank
 * Ranks: 2 3
 */
#include "mpilab.h"

MPILAB_BCAST(parent_without_root)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;

    int err = MPI_SUCCESS, distance = 1;
    while (distance < size && (virtual_rank & distance) == 0)
        distance *= 2;
    if (virtual_rank != 0)
        err = MPI_Recv(buffer, count, datatype, virtual_rank - distance, TAG, /* <- ranks 2 3 */
                       comm, MPI_STATUS_IGNORE);
    for (distance /= 2; distance > 0 && err == MPI_SUCCESS; distance /= 2)
        if (virtual_rank + distance < size)
            err = MPI_Send(buffer, count, datatype, (virtual_rank + distance + root) % size, TAG,
                           comm);
    return err;
}
