%%kernel bcast_pipeline
// Fault: finds the segments by the bytes of data, as if elements had no holes.
#include "mpilab.h"

int bcast_pipeline(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, type_bytes, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_size(datatype, &type_bytes);
    const long segment = mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : 8192;
    const int elements = segment > type_bytes ? (int)(segment / type_bytes) : 1;
    const int place = (rank - root + size) % size;

    for (int begin = 0; begin < count && err == MPI_SUCCESS; begin += elements) {
        const int length = elements < count - begin ? elements : count - begin;
        char *const part = (char *)buffer + (long)begin * type_bytes;
        if (place > 0)
            err = MPI_Recv(part, length, datatype, (rank - 1 + size) % size, TAG, comm,
                           MPI_STATUS_IGNORE);
        if (place < size - 1 && err == MPI_SUCCESS)
            err = MPI_Send(part, length, datatype, (rank + 1) % size, TAG, comm);
    }
    return err;
}
