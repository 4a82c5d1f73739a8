/* Fault: segment_bytes may be 0, which asks for the default.
 * Collective: bcast
 * Case: ranks=2 count=4
 * Diagnosis: crash
 * Pattern: division by zero
 * Ranks: any
 */
#include "mpilab.h"

MPILAB_BCAST(division_by_segment)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int before = rank == root ? MPI_PROC_NULL : (rank - 1 + size) % size;
    const int after = (rank + 1) % size == root ? MPI_PROC_NULL : (rank + 1) % size;
    int bytes;
    MPI_Type_size(datatype, &bytes);
    const int elements = (int)mpilab_tuning.segment_bytes / bytes;
    const int pieces = (count + elements - 1) / elements; /* <- */

    int err = MPI_SUCCESS;
    for (int piece = 0; piece < pieces && err == MPI_SUCCESS; piece++) {
        const int length = piece < pieces - 1 ? elements : count - piece * elements;
        void *segment = block(buffer, piece, elements, datatype);
        err = MPI_Recv(segment, length, datatype, before, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(segment, length, datatype, after, TAG, comm);
    }
    return err;
}
