/* Fault: the root sends one segment less than the others wait for.
 * Collective: bcast
 * Case: ranks=3 count=8 segment=16
 * Diagnosis: deadlock
 * Pattern: a loop that ends early
 * Ranks: 1
 */
#include "mpilab.h"

MPILAB_BCAST(last_segment_never_sent)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int bytes;
    MPI_Type_size(datatype, &bytes);
    const int elements = (int)mpilab_tuning.segment_bytes / bytes;
    const int before = rank == root ? MPI_PROC_NULL : (rank - 1 + size) % size;
    const int after = (rank + 1) % size == root ? MPI_PROC_NULL : (rank + 1) % size;
    const int pieces = count / elements;

    int err = MPI_SUCCESS;
    for (int piece = 0; piece < pieces - (rank == root) && err == MPI_SUCCESS; piece++) {
        void *segment = block(buffer, piece, elements, datatype);
        if (rank != root)
            err = MPI_Recv(segment, elements, datatype, before, /* <- rank 1 */
                           TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(segment, elements, datatype, after, TAG, comm);
    }
    return err;
}
