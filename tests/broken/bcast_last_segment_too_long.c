/* Fault: the last segment is sent and received with the full length.
 * Collective: bcast
 * Case: ranks=3 count=10 segment=16
 * Diagnosis: wrong-result
 * Pattern: outside the receive buffer
 * Ranks: 1 2
 */
#include "mpilab.h"

MPILAB_BCAST(last_segment_too_long)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int bytes;
    MPI_Type_size(datatype, &bytes);
    const int elements = (int)mpilab_tuning.segment_bytes / bytes;
    const int before = rank == root ? MPI_PROC_NULL : (rank - 1 + size) % size;
    const int after = (rank + 1) % size == root ? MPI_PROC_NULL : (rank + 1) % size;

    int err = MPI_SUCCESS;
    for (int first = 0; first < count && err == MPI_SUCCESS; first += elements) {
        void *segment = block(buffer, first, 1, datatype);
        err = MPI_Recv(segment, elements, datatype, before, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(segment, elements, datatype, after, TAG, comm);
    }
    return err;
}
