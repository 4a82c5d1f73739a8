/* Fault: the segments are received from the last one to the first.
 * Collective: bcast
 * Case: ranks=3 count=8 segment=16
 * Diagnosis: wrong-result
 * Pattern: parts in the wrong place
 * Ranks: 1 2
 */
#include "mpilab.h"

MPILAB_BCAST(segments_in_reverse)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int bytes;
    MPI_Type_size(datatype, &bytes);
    const int elements = (int)mpilab_tuning.segment_bytes / bytes;
    const int pieces = count / elements;

    int err = MPI_SUCCESS;
    for (int piece = 0; piece < pieces && err == MPI_SUCCESS; piece++) {
        if (rank != root) {
            err = MPI_Recv(block(buffer, pieces - 1 - piece, elements, datatype), elements,
                           datatype, root, TAG, comm, MPI_STATUS_IGNORE);
            continue;
        }
        for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
            if (dest != root)
                err = MPI_Send(block(buffer, piece, elements, datatype), elements, datatype, dest,
                               TAG, comm);
    }
    return err;
}
