%%kernel bcast_pipeline
// Fault: takes the bytes of a segment for its number of elements.
#include "mpilab.h"

int bcast_pipeline(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const long segment = mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : 8192;
    const int place = (rank - root + size) % size;

    for (int begin = 0; begin < count && err == MPI_SUCCESS; begin += (int)segment) {
        const int length = segment < count - begin ? (int)segment : count - begin;
        if (place > 0)
            err = MPI_Recv(block(buffer, begin, 1, datatype), length, datatype,
                           (rank - 1 + size) % size, TAG, comm, MPI_STATUS_IGNORE);
        if (place < size - 1 && err == MPI_SUCCESS)
            err = MPI_Send(block(buffer, begin, 1, datatype), length, datatype, (rank + 1) % size,
                           TAG, comm);
    }
    return err;
}
