/* Fault: segments have tags, and are asked for in reverse order.
 * Collective: bcast
 * Case: ranks=2 count=8 segment=16 strict
 * Diagnosis: deadlock
 * Pattern: mismatched tags
 * Ranks: 1
 */
#include "mpilab.h"

MPILAB_BCAST(segments_with_tags_in_reverse)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int bytes;
    MPI_Type_size(datatype, &bytes);
    const int elements = (int)mpilab_tuning.segment_bytes / bytes;
    const int pieces = count / elements;

    int err = MPI_SUCCESS;
    for (int i = 0; i < pieces && err == MPI_SUCCESS; i++) {
        const int piece = rank == root ? i : pieces - 1 - i;
        void *segment = block(buffer, piece, elements, datatype);
        if (rank != root)
            err = MPI_Recv(segment, elements, datatype, root, piece, /* <- rank 1 */
                           comm, MPI_STATUS_IGNORE);
        for (int dest = 0; dest < size && rank == root && err == MPI_SUCCESS; dest++)
            if (dest != root)
                err = MPI_Send(segment, elements, datatype, dest, piece, comm); /* <- rank 0 */
    }
    return err;
}
