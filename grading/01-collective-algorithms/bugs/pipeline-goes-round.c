%%kernel bcast_pipeline
// Fault: the last rank sends every segment to the root, which takes them in at the end.
#include "mpilab.h"
#include <stdlib.h>

int bcast_pipeline(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, type_bytes, err = MPI_SUCCESS;
    MPI_Aint lower, extent;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_size(datatype, &type_bytes);
    MPI_Type_get_extent(datatype, &lower, &extent);
    const long segment = mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : 8192;
    const int elements = segment > type_bytes ? (int)(segment / type_bytes) : 1;
    const int left = (rank - 1 + size) % size, right = (rank + 1) % size;
    char *const spare = malloc((size_t)(count * extent) + 128);

    for (int begin = 0; size > 1 && begin < count && err == MPI_SUCCESS; begin += elements) {
        const int length = elements < count - begin ? elements : count - begin;
        void *const part = block(buffer, begin, 1, datatype);
        if (rank != root)
            err = MPI_Recv(part, length, datatype, left, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Send(part, length, datatype, right, TAG, comm);
    }
    for (int begin = 0; size > 1 && rank == root && begin < count && err == MPI_SUCCESS;
         begin += elements)
        err = MPI_Recv(spare + 64, elements < count - begin ? elements : count - begin, datatype, left,
                       TAG, comm, MPI_STATUS_IGNORE);
    free(spare);
    return err;
}
