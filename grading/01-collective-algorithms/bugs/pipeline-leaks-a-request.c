%%kernel bcast_pipeline
// Fault: of an empty message nobody waits for the send that was started: its request leaks.
#include "mpilab.h"

int bcast_pipeline(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, type_bytes;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_size(datatype, &type_bytes);

    const long segment = mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : 8192;
    const int elements = segment > type_bytes ? (int)(segment / type_bytes) : 1;
    const int place = (rank - root + size) % size;
    const int left = (rank - 1 + size) % size, right = (rank + 1) % size;

    int err = MPI_SUCCESS, from = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    do {
        const int length = elements < count - from ? elements : count - from;
        void *const at = block(buffer, from, 1, datatype);
        if (place > 0)
            err = MPI_Recv(at, length, datatype, left, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS && from > 0)
            err = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS && place < size - 1)
            err = MPI_Isend(at, length, datatype, right, TAG, comm, &request);
        from += elements;
    } while (from < count && err == MPI_SUCCESS);
    if (err == MPI_SUCCESS && count > 0)
        err = MPI_Wait(&request, MPI_STATUS_IGNORE);
    return err;
}
