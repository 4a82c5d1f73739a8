/* Buffers as runs of bytes, and the reduction of what is in the slots. */
#include "memory.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

int mpilab_element(MPI_Datatype datatype, int *bytes, int *is_dense)
{
    MPI_Aint lower_bound, extent;
    int integers, addresses, datatypes, combiner;
    int err = MPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner);
    if (err == MPI_SUCCESS)
        err = MPI_Type_get_extent(datatype, &lower_bound, &extent);
    if (err == MPI_SUCCESS)
        err = MPI_Type_size(datatype, bytes);
    if (err == MPI_SUCCESS)
        *is_dense = combiner == MPI_COMBINER_NAMED && *bytes == extent;
    return err;
}

int mpilab_shared_for_reduction(MPI_Comm comm, MPI_Datatype datatype, struct mpilab_shared *shared,
                                int *bytes)
{
    int is_dense;
    int err = mpilab_shared_of(comm, shared);
    if (err == MPI_SUCCESS)
        err = mpilab_element(datatype, bytes, &is_dense);
    if (err == MPI_SUCCESS && !is_dense)
        shared->size = 0;
    return err;
}

int mpilab_open_stream(const void *buffer, MPI_Aint count, MPI_Datatype datatype, int is_read,
                       struct mpilab_stream *stream)
{
    int size, is_dense, position = 0;
    int err = mpilab_element(datatype, &size, &is_dense);
    if (err != MPI_SUCCESS)
        return err;
    *stream =
        (struct mpilab_stream){(char *)buffer, count * size, count, datatype, (void *)buffer, NULL};
    if (is_dense || stream->length == 0)
        return MPI_SUCCESS;
    if (stream->length > INT_MAX || count > INT_MAX)
        return MPI_ERR_COUNT;
    stream->packed = stream->bytes = malloc((size_t)stream->length);
    if (stream->packed == NULL)
        return MPI_ERR_NO_MEM;
    if (is_read)
        err = MPI_Pack(buffer, (int)count, datatype, stream->packed, (int)stream->length, &position,
                       MPI_COMM_SELF);
    return err;
}

int mpilab_close_stream(struct mpilab_stream *stream, int is_written)
{
    int err = MPI_SUCCESS, position = 0;
    if (stream->packed != NULL && is_written)
        err = MPI_Unpack(stream->packed, (int)stream->length, &position, stream->buffer,
                         (int)stream->count, stream->datatype, MPI_COMM_SELF);
    free(stream->packed);
    return err;
}

/* MPI_Reduce_local(a, b) puts a op b into b: so the result grows from the last rank's elements to
 * the left. */
int mpilab_combine(const struct mpilab_shared *shared, const void *own, void *result, int count,
                   MPI_Datatype datatype, MPI_Op op)
{
    const int last = shared->size - 1;
    int size;
    int err = MPI_Type_size(datatype, &size);
    for (int rank = last; rank >= 0 && err == MPI_SUCCESS; rank--) {
        const void *part = rank == shared->rank ? own : mpilab_slot_of(shared, rank);
        if (rank < last)
            err = MPI_Reduce_local(part, result, count, datatype, op);
        else if (part != result)
            memcpy(result, part, (size_t)count * (size_t)size);
    }
    return err;
}
