/* Fault: what is left over after all whole segments is never sent.
 * Collective: bcast
 * Case: ranks=4 count=10 segment=16
 * Diagnosis: wrong-result
 * Pattern: part of the message missing
 * Ranks: 1 2 3
 */
#include "mpilab.h"

MPILAB_BCAST(remainder_forgotten)
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
    for (int piece = 0; piece < count / elements && err == MPI_SUCCESS; piece++) {
        void *segment = block(buffer, piece, elements, datatype);
        err = MPI_Recv(segment, elements, datatype, before, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(segment, elements, datatype, after, TAG, comm);
    }
    return err;
}
