/* Gathers by levels: trees over the ranks in the order of their places.
 *
 * Every rank has a height, and sends its blocks to the nearest preceding rank that is higher; the
 * root comes first and is the highest. So a rank collects the blocks that follow its own, and only
 * the root has to put them into rank order.
 *
 *   ranks by place   0 1 2 3 | 4 5 6 7     two groups of two nodes of two ranks
 *   height           3 0 1 0   2 0 1 0     the root, leaders of groups, leaders of nodes, others
 *
 *   3, 7 -> 2, 6;  6, 5 -> 4;  4, 2, 1 -> 0
 */
#ifndef MPILAB_GATHERING_H
#define MPILAB_GATHERING_H

#include "topology.h"

/* The height of the rank at a position above 0 of `order`, the order by places. */
typedef int mpilab_height(const struct mpilab_topology *topology, const int *order, int position);

/* Heights by levels: a level adds 1 if the rank is the first of its node or group. */
mpilab_height mpilab_height_by_node, mpilab_height_by_group, mpilab_height_by_node_group;

/* What a rank collects: the blocks of the ranks order[own] ... order[own + blocks - 1], its own
 * first. Child i is the rank at position child[i], and sends the blocks from there up to those of
 * child i+1: child[children] is own + blocks. */
struct mpilab_collector {
    const int *order; /* all ranks, the root first; valid as long as the levels are */
    int own, blocks, children;
    int parent; /* rank, or MPI_PROC_NULL at the root */
    int *child;
};

/* The caller frees `child`. Collective at the first call for a communicator. */
int mpilab_collector_of(mpilab_height *height, int root, MPI_Comm comm,
                        struct mpilab_collector *collector);

/* MPI_Gather up such a tree. A rank sends up everything that it collects in one message. */
int mpilab_gather_by(mpilab_height *height, const void *sendbuf, int sendcount,
                     MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                     int root, MPI_Comm comm);

#endif
