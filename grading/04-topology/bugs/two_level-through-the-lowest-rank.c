%%kernel bcast_two_level
// Fault: the root hands the message to the lowest rank of its node, which begins.
#include "mpilab.h"

int bcast_two_level(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int key = rank;
    int begins, ends;
    MPI_Group here, all;
    MPI_Comm first;
    MPI_Comm level[2];
    int place;
    int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &level[1]);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_rank(level[1], &place);
    /* Does this node hold the root? Its leader is then the first of all leaders. */
    MPI_Comm_group(level[1], &here);
    MPI_Comm_group(comm, &all);
    MPI_Group_translate_ranks(all, 1, &root, here, &begins);
    err = MPI_Comm_split(comm, place == 0 ? 0 : MPI_UNDEFINED, begins >= 0 ? -1 : key, &level[0]);
    MPI_Group_translate_ranks(here, 1, (int[]){0}, all, &ends);
    MPI_Group_free(&here);
    MPI_Group_free(&all);
    first = comm;
    if (begins > 0 && rank == root && err == MPI_SUCCESS)
        err = MPI_Send(buffer, count, datatype, ends, TAG, first);
    if (begins > 0 && place == 0 && err == MPI_SUCCESS)
        err = MPI_Recv(buffer, count, datatype, root, TAG, first, MPI_STATUS_IGNORE);

    for (int i = 0; i < 2 && err == MPI_SUCCESS; i++) { /* among the leaders, then on each node */
        int members, distance = 1;
        if (level[i] == MPI_COMM_NULL)
            continue;
        MPI_Comm_rank(level[i], &place);
        MPI_Comm_size(level[i], &members);
        while (distance < members && (place & distance) == 0)
            distance *= 2;
        if (place > 0)
            err = MPI_Recv(buffer, count, datatype, place - distance, TAG, level[i],
                           MPI_STATUS_IGNORE);
        for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
            if (place + distance < members)
                err = MPI_Send(buffer, count, datatype, place + distance, TAG, level[i]);
    }
    if (level[0] != MPI_COMM_NULL)
        MPI_Comm_free(&level[0]);
    MPI_Comm_free(&level[1]);
    return err;
}
