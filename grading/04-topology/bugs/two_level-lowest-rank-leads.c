%%kernel bcast_two_level
// Fault: the lowest rank of a node leads it, whatever the root; right for root 0 only.
#include "mpilab.h"

int bcast_two_level(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int key = rank;
    MPI_Comm level[2];
    int place;
    int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &level[1]);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_rank(level[1], &place);
    err = MPI_Comm_split(comm, place == 0 ? 0 : MPI_UNDEFINED, key, &level[0]);

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
