/* Double ring barrier.
 *
 * A token goes around the ring twice. When it is back at rank 0 for the first time, all ranks have
 * entered; on its second lap, it releases every rank that it passes.
 *
 *   round 1    2          3          4          5          6             P = 3
 *   0 -> 1     1 -> 2     2 -> 0     0 -> 1     1 -> 2     2 -> 0
 *
 * Rounds:   2 * P if P > 1 else 0
 * Messages: 2 * P if P > 1 else 0
 * Bytes:    0
 * Cost: 2P α: each rank communicates only with its neighbors, but the messages form one long chain.
 * Source: Open MPI 5, coll/base, "double_ring".
 */
#include "mpilab.h"

MPILAB_BARRIER(double_ring)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;

    int err = MPI_SUCCESS;
    for (int lap = 1; size > 1 && lap <= 2 && err == MPI_SUCCESS; lap++) {
        if (rank > 0)
            err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(NULL, 0, MPI_BYTE, right, TAG, comm);
        if (err == MPI_SUCCESS && rank == 0)
            err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
