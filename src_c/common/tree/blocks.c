/* Memory for blocks, pending messages to it after an error, and runs of blocks. */
#include "blocks.h"
#include <limits.h>
#include <stdlib.h>

int mpilab_make_room(int blocks, int count, MPI_Datatype type, struct mpilab_room *room)
{
    MPI_Aint lower_bound, extent, true_lower_bound, true_extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    MPI_Type_get_true_extent(type, &true_lower_bound, &true_extent);
    /* From the first element to the last; negative if the elements descend in memory. */
    const MPI_Aint way = count > 0 && blocks > 0 ? extent * ((MPI_Aint)blocks * count - 1) : 0;
    room->memory = malloc((size_t)((way < 0 ? -way : way) + true_extent + 1));
    room->origin = (char *)room->memory - true_lower_bound - (way < 0 ? way : 0);
    return room->memory == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

void mpilab_no_requests(int count, MPI_Request *requests)
{
    for (int i = 0; i < count; i++)
        requests[i] = MPI_REQUEST_NULL;
}

void mpilab_abandon(int count, MPI_Request *receives)
{
    for (int i = 0; i < count; i++)
        if (receives[i] != MPI_REQUEST_NULL)
            MPI_Cancel(&receives[i]);
    MPI_Waitall(count, receives, MPI_STATUSES_IGNORE);
}

int mpilab_leave_sends(int count, MPI_Request *sends)
{
    int all_over = 1, over;
    for (int i = 0; i < count; i++) {
        if (sends[i] != MPI_REQUEST_NULL)
            MPI_Test(&sends[i], &over, MPI_STATUS_IGNORE);
        if (sends[i] == MPI_REQUEST_NULL)
            continue;
        MPI_Request_free(&sends[i]);
        all_over = 0;
    }
    return all_over;
}

/* Can a run be described by a count of elements? If not, it needs a datatype. */
static int is_plain(int first, int length, int size, int count)
{
    return first + length <= size && (long long)length * count <= INT_MAX;
}

int mpilab_send_run(const void *buffer, int first, int length, int size, int count,
                    MPI_Datatype type, int dest, MPI_Comm comm)
{
    if (is_plain(first, length, size, count))
        return MPI_Send(block(buffer, first, count, type), length * count, type, dest, TAG, comm);
    MPI_Datatype run;
    int err = wrapped_run_type(first, length, size, count, type, &run);
    if (err == MPI_SUCCESS) {
        err = MPI_Send(buffer, 1, run, dest, TAG, comm);
        MPI_Type_free(&run);
    }
    return err;
}

int mpilab_irecv_run(void *buffer, int first, int length, int size, int count, MPI_Datatype type,
                     int source, MPI_Comm comm, MPI_Request *request)
{
    if (is_plain(first, length, size, count))
        return MPI_Irecv(block(buffer, first, count, type), length * count, type, source, TAG, comm,
                         request);
    MPI_Datatype run;
    int err = wrapped_run_type(first, length, size, count, type, &run);
    if (err == MPI_SUCCESS) {
        err = MPI_Irecv(buffer, 1, run, source, TAG, comm, request);
        MPI_Type_free(&run);
    }
    return err;
}

int mpilab_binomial_subtree(int virtual_rank, int size)
{
    const int lowest_bit = virtual_rank & -virtual_rank;
    const int above = size - virtual_rank;
    return virtual_rank == 0 || above < lowest_bit ? above : lowest_bit;
}
