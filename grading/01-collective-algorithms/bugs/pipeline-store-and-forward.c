%%kernel bcast_pipeline
// Fault: a rank takes in all segments before it passes the first one on.
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
    const int left = (rank - 1 + size) % size, right = (rank + 1) % size;

    for (int begin = 0; place > 0 && begin < count && err == MPI_SUCCESS; begin += elements)
        err = MPI_Recv(block(buffer, begin, 1, datatype),
                       elements < count - begin ? elements : count - begin, datatype, left, TAG,
                       comm, MPI_STATUS_IGNORE);
    for (int begin = 0; place < size - 1 && begin < count && err == MPI_SUCCESS; begin += elements)
        err = MPI_Send(block(buffer, begin, 1, datatype),
                       elements < count - begin ? elements : count - begin, datatype, right, TAG,
                       comm);
    return err;
}
