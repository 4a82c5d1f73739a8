/* Fault: the last, shorter segment is put where it would be if all were so short.
 * Collective: bcast
 * Case: ranks=2 count=10 segment=16
 * Diagnosis: wrong-result
 * Pattern: parts in the wrong place
 * Ranks: 1
 */
#include "mpilab.h"

MPILAB_BCAST(segment_at_its_own_length)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int bytes;
    MPI_Type_size(datatype, &bytes);
    const int elements = (int)mpilab_tuning.segment_bytes / bytes;

    int err = MPI_SUCCESS;
    for (int piece = 0; piece * elements < count && err == MPI_SUCCESS; piece++) {
        const int left = count - piece * elements;
        const int length = left < elements ? left : elements;
        if (rank != root)
            err = MPI_Recv(block(buffer, piece, length, datatype), length, datatype, root, TAG,
                           comm, MPI_STATUS_IGNORE);
        for (int dest = 0; dest < size && rank == root && err == MPI_SUCCESS; dest++)
            if (dest != root)
                err = MPI_Send(block(buffer, piece, elements, datatype), length, datatype, dest,
                               TAG, comm);
    }
    return err;
}
