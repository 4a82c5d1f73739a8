%%kernel bcast_reordered
// Fault: broadcasts from the first rank of the new order, which is the root for root 0 only.
#include "mpilab.h"
#include "splitting.h"

int bcast_reordered(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int mine = rank;
    MPI_Comm group, node, ordered;
    int group_leader, node_leader, place, distance = 1;
    int err = split_by_name(comm, mpilab_place()->group, mine, &group);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_split_type(group, MPI_COMM_TYPE_SHARED, mine, MPI_INFO_NULL, &node);
    if (err == MPI_SUCCESS)
        err = ranks_in(group, 1, comm, &group_leader);
    if (err == MPI_SUCCESS)
        err = ranks_in(node, 1, comm, &node_leader);
    if (err != MPI_SUCCESS)
        return err;

    /* A group and a node are known by the numbers, from the root, of their leaders. */
    const int of_group = group_leader;
    const int of_node = node_leader;
    err = MPI_Comm_split(comm, 0, (of_group * size + of_node) * size + mine, &ordered);
    MPI_Comm_free(&node);
    MPI_Comm_free(&group);
    if (err != MPI_SUCCESS)
        return err;

    MPI_Comm_rank(ordered, &place);
    while (distance < size && (place & distance) == 0)
        distance *= 2;
    if (place > 0)
        err = MPI_Recv(buffer, count, datatype, place - distance, TAG, ordered, MPI_STATUS_IGNORE);
    for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
        if (place + distance < size)
            err = MPI_Send(buffer, count, datatype, place + distance, TAG, ordered);
    MPI_Comm_free(&ordered);
    return err;
}
