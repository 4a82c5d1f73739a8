/* Gathers by levels. */
#include "gathering.h"
#include "../tree/blocks.h"
#include "block_lists.h"
#include <stdlib.h>

int mpilab_height_by_node(const struct mpilab_topology *topology, const int *order, int position)
{
    return topology->node[order[position]] != topology->node[order[position - 1]];
}

int mpilab_height_by_group(const struct mpilab_topology *topology, const int *order, int position)
{
    return mpilab_group_of(topology, order[position]) !=
           mpilab_group_of(topology, order[position - 1]);
}

int mpilab_height_by_node_group(const struct mpilab_topology *topology, const int *order,
                                int position)
{
    return mpilab_height_by_node(topology, order, position) +
           mpilab_height_by_group(topology, order, position);
}

/* The nearest preceding rank that is higher: no rank is higher than the root. */
static int find_parent(const struct mpilab_topology *topology, mpilab_height *height,
                       const int *order, int own)
{
    if (own == 0)
        return MPI_PROC_NULL;
    const int mine = height(topology, order, own);
    int above = own - 1;
    while (above > 0 && height(topology, order, above) <= mine)
        above--;
    return order[above];
}

/* A later rank is a child unless a rank between them is higher than it. */
static void find_children(const struct mpilab_topology *topology, mpilab_height *height,
                          struct mpilab_collector *collector)
{
    const int *order = collector->order;
    const int own = collector->own;
    int highest = 0, position = own + 1;
    for (; position < topology->size; position++) {
        const int high = height(topology, order, position);
        if (own > 0 && high >= height(topology, order, own))
            break;
        if (high >= highest)
            collector->child[collector->children++] = position;
        highest = high > highest ? high : highest;
    }
    collector->child[collector->children] = position;
    collector->blocks = position - own;
}

int mpilab_collector_of(mpilab_height *height, int root, MPI_Comm comm,
                        struct mpilab_collector *collector)
{
    const struct mpilab_topology *topology;
    const struct mpilab_levels *levels;
    collector->child = NULL;
    int err = mpilab_topology_of(comm, &topology);
    if (err == MPI_SUCCESS)
        err = mpilab_levels_of(comm, root, &levels);
    if (err != MPI_SUCCESS)
        return err;
    collector->child = malloc((size_t)topology->size * sizeof *collector->child);
    if (collector->child == NULL)
        return MPI_ERR_NO_MEM;
    collector->order = levels->all.rank;
    collector->own = levels->all.self;
    collector->children = 0;
    collector->parent = find_parent(topology, height, collector->order, collector->own);
    find_children(topology, height, collector);
    return MPI_SUCCESS;
}

static int at_root(const struct mpilab_collector *collector, const void *sendbuf, int sendcount,
                   MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                   int root, MPI_Request *requests, MPI_Comm comm)
{
    int err = MPI_SUCCESS, started = 0;
    for (int i = 0; i < collector->children && err == MPI_SUCCESS; i++) {
        const int *ranks = &collector->order[collector->child[i]];
        err = mpilab_irecv_list(recvbuf, ranks, collector->child[i + 1] - collector->child[i],
                                recvcount, recvtype, ranks[0], comm, &requests[started++]);
    }
    if (err == MPI_SUCCESS)
        err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        mpilab_abandon(started, requests);
    return err;
}

/* Only the root knows the receive type: in transit, blocks have the layout of this rank's own
 * block. */
static int in_between(const struct mpilab_collector *collector, const void *sendbuf, int count,
                      MPI_Datatype type, MPI_Request *requests, MPI_Comm comm)
{
    const int blocks = collector->blocks;
    struct mpilab_room room;
    int err = mpilab_make_room(blocks, count, type, &room), started = 0;
    for (int i = 0; i < collector->children && err == MPI_SUCCESS; i++)
        err = mpilab_irecv_run(room.origin, collector->child[i] - collector->own,
                               collector->child[i + 1] - collector->child[i], blocks, count, type,
                               collector->order[collector->child[i]], comm, &requests[started++]);
    if (err == MPI_SUCCESS)
        err = copy_local(sendbuf, count, type, room.origin, count, type);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    if (err == MPI_SUCCESS)
        err = mpilab_send_run(room.origin, 0, blocks, blocks, count, type, collector->parent, comm);
    if (err != MPI_SUCCESS)
        mpilab_abandon(started, requests);
    free(room.memory);
    return err;
}

int mpilab_gather_by(mpilab_height *height, const void *sendbuf, int sendcount,
                     MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                     int root, MPI_Comm comm)
{
    struct mpilab_collector collector;
    MPI_Request *requests = NULL;
    int err = mpilab_collector_of(height, root, comm, &collector);
    if (err == MPI_SUCCESS && collector.children > 0) {
        requests = malloc((size_t)collector.children * sizeof *requests);
        err = requests == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    }
    if (err == MPI_SUCCESS)
        mpilab_no_requests(collector.children, requests);
    if (err == MPI_SUCCESS && collector.own == 0)
        err = at_root(&collector, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                      requests, comm);
    else if (err == MPI_SUCCESS && collector.children == 0)
        err = MPI_Send(sendbuf, sendcount, sendtype, collector.parent, TAG, comm);
    else if (err == MPI_SUCCESS)
        err = in_between(&collector, sendbuf, sendcount, sendtype, requests, comm);
    free(requests);
    free(collector.child);
    return err;
}
