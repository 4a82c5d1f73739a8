/* Hierarchical allgather: up to the leader of each node, among leaders by Bruck's algorithm, and
 * down again.
 *
 * The ranks of a node send to its leader. The leaders of a group's nodes exchange what they have,
 * then the leaders of all groups: in step i a leader sends what it has from its own part and the
 * 2^i - 1 following ones, and gets as many parts from the one 2^i further on. A group's leader then
 * hands down what came from other groups to the leaders of its nodes, each of those everything to
 * its ranks. Every block is received directly in its place in the receive buffer, wherever ranks
 * are.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node                    digits = blocks sent
 *   round 1   1 -1-> 0     3 -3-> 2     5 -5-> 4     7 -7-> 6       up
 *   round 2   0 -01-> 2   2 -23-> 0     4 -45-> 6   6 -67-> 4       among the nodes of a group
 *   round 3   0 -0123-> 4   4 -4567-> 0                             among groups
 *   round 4   0 -4567-> 2               4 -0123-> 6                 down
 *   round 5   0 -0..7-> 1   2 -0..7-> 3   4 -0..7-> 5   6 -0..7-> 7
 *
 * Rounds:   (Q > 1) + floor_log2(Q) + ceil_log2(M//G) + ceil_log2(G) + (G > 1) * floor_log2(M//G)
 * Messages: 2 * (P - M) + M * ceil_log2(M // G) + G * ceil_log2(G) + (M - G if G > 1 else 0)
 * Bytes:    ((P - M) * (P + 1) + (M - 1) * P) * m
 * Between nodes:  (M - 1) * P * m
 * Between groups: (G - 1) * P * m
 * Cost: every node gets each other node's blocks once, every group those of other groups, which is
 * the minimum. It sends few, short messages over slow links: for short blocks. With long ones, a
 * link waits while data goes up and down (allgather/pipelined.c has no such pause).
 * Source: Bruck et al. (1997) among the leaders; the levels: Karonis et al. (2000), "Exploiting
 * hierarchy in parallel computer networks".
 */
#include "../common/topology/block_lists.h"
#include "../common/topology/topology.h"
#include <stdlib.h>
#include <string.h>

struct data {
    void *recvbuf;
    int count;
    MPI_Datatype type;
    MPI_Comm comm;
};

static int collect(const struct mpilab_members *node, const void *sendbuf, int sendcount,
                   MPI_Datatype sendtype, const struct data *data)
{
    const int self = node->rank[node->self], others = node->size - 1;
    if (node->self > 0 && sendbuf == MPI_IN_PLACE)
        return MPI_Send(block(data->recvbuf, self, data->count, data->type), data->count,
                        data->type, node->rank[0], TAG, data->comm);
    if (node->self > 0)
        return MPI_Send(sendbuf, sendcount, sendtype, node->rank[0], TAG, data->comm);

    MPI_Request *requests = malloc((size_t)node->size * sizeof *requests);
    int err = requests == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    for (int i = 0; i < others && err == MPI_SUCCESS; i++)
        err = MPI_Irecv(block(data->recvbuf, node->rank[i + 1], data->count, data->type),
                        data->count, data->type, node->rank[i + 1], TAG, data->comm, &requests[i]);
    if (err == MPI_SUCCESS)
        err = place_own_block(sendbuf, sendcount, sendtype, data->recvbuf, data->count, data->type,
                              self);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(others, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}

/* Parts of all ranks, in a circle: part i of `parts` consists of the ranks from order[begin[i]] up
 * to, but not including, order[begin[i + 1]]; the first one leads. `list` has room for all
 * ranks. */
struct ring {
    const int *order, *begin;
    int parts, self;
    int *list;
};

static int leader_of(const struct ring *ring, int part)
{
    return ring->order[ring->begin[part % ring->parts]];
}

/* Puts the ranks of `parts` parts, starting at part `first`, into the list; returns their
 * number. */
static int list_parts(const struct ring *ring, int first, int parts)
{
    int ranks = 0;
    for (int i = 0; i < parts; i++) {
        const int part = (first + i) % ring->parts;
        const int length = ring->begin[part + 1] - ring->begin[part];
        memcpy(&ring->list[ranks], &ring->order[ring->begin[part]], (size_t)length * sizeof(int));
        ranks += length;
    }
    return ranks;
}

static int exchange(const struct ring *ring, const struct data *data)
{
    int err = MPI_SUCCESS;
    for (int distance = 1; distance < ring->parts && err == MPI_SUCCESS; distance *= 2) {
        const int missing = ring->parts - distance;
        const int parts = distance < missing ? distance : missing;
        MPI_Request requests[2];
        int ranks = list_parts(ring, ring->self + distance, parts);
        err = mpilab_irecv_list(data->recvbuf, ring->list, ranks, data->count, data->type,
                                leader_of(ring, ring->self + distance), data->comm, &requests[0]);
        ranks = list_parts(ring, ring->self, parts);
        if (err == MPI_SUCCESS)
            err =
                mpilab_isend_list(data->recvbuf, ring->list, ranks, data->count, data->type,
                                  leader_of(ring, ring->self + missing), data->comm, &requests[1]);
        if (err == MPI_SUCCESS)
            err = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    return err;
}

/* What this datatype covers in the receive buffer goes from the first of the members to all. */
static int hand_down(const struct mpilab_members *members, MPI_Datatype *covers,
                     const struct data *data)
{
    struct mpilab_tree tree;
    mpilab_begin_tree(&tree);
    int err = mpilab_add_knomial(&tree, members, 2);
    if (err == MPI_SUCCESS)
        err = mpilab_bcast_along(&tree, data->recvbuf, 1, *covers, 0, data->comm);
    MPI_Type_free(covers);
    return err;
}

static int hand_down_other_groups(const struct mpilab_members *group_nodes,
                                  const struct ring *groups, const struct data *data)
{
    MPI_Datatype others;
    const int ranks = list_parts(groups, groups->self + 1, groups->parts - 1);
    const int err = mpilab_list_type(groups->list, ranks, data->count, data->type, &others);
    return err == MPI_SUCCESS ? hand_down(group_nodes, &others, data) : err;
}

static int hand_down_everything(const struct mpilab_members *node, int size,
                                const struct data *data)
{
    MPI_Datatype everything;
    const int err = wrapped_run_type(0, size, size, data->count, data->type, &everything);
    return err == MPI_SUCCESS ? hand_down(node, &everything, data) : err;
}

/* What the leader of a node does between the way up and the way down. */
static int among_leaders(const struct mpilab_topology *topology, const struct mpilab_levels *levels,
                         int rank, const struct data *data)
{
    const int group = mpilab_group_of(topology, rank), first = topology->first_node[group];
    int *list = malloc((size_t)topology->size * sizeof *list);
    const struct ring nodes = {topology->order, &topology->node_begin[first],
                               topology->first_node[group + 1] - first,
                               topology->node[rank] - first, list};
    const struct ring groups = {topology->order, topology->group_begin, topology->groups, group,
                                list};
    int err = list == NULL ? MPI_ERR_NO_MEM : exchange(&nodes, data);
    if (err == MPI_SUCCESS && levels->groups.self >= 0)
        err = exchange(&groups, data);
    if (err == MPI_SUCCESS && topology->groups > 1)
        err = hand_down_other_groups(&levels->group_nodes, &groups, data);
    free(list);
    return err;
}

MPILAB_ALLGATHER(hierarchical)
{
    const struct mpilab_topology *topology;
    const struct mpilab_levels *levels;
    const struct data data = {recvbuf, recvcount, recvtype, comm};
    int rank;
    MPI_Comm_rank(comm, &rank);
    int err = mpilab_topology_of(comm, &topology);
    if (err == MPI_SUCCESS)
        err = mpilab_levels_of(comm, 0, &levels);
    if (err == MPI_SUCCESS)
        err = collect(&levels->node, sendbuf, sendcount, sendtype, &data);
    if (err == MPI_SUCCESS && levels->nodes.self >= 0)
        err = among_leaders(topology, levels, rank, &data);
    if (err == MPI_SUCCESS)
        err = hand_down_everything(&levels->node, topology->size, &data);
    return err;
}
