/* Multi-lane broadcast: every core of a node drives the network.
 *
 * The root cuts the message into one block per lane, and distributes the blocks on its node. The
 * ranks at the same place on their nodes form a lane, down which their block goes, by levels, in
 * all lanes at once. Then the ranks of each node exchange the blocks.
 *
 *   nodes {0 1} {2 3} {4 5}, root 0, blocks a, b       lane 0: 0 2 4    lane 1: 1 3 5
 *   round 1   0 -b-> 1
 *   round 2   0 -a-> 4   0 -a-> 2   1 -b-> 5   1 -b-> 3
 *   round 3   0 -a-> 1   2 -a-> 3   3 -b-> 2   4 -a-> 5   5 -b-> 4
 *
 * There are as many lanes as ranks on the smallest node; if that is one, only the node leaders take
 * part. Further ranks of a node take part in the last round only.
 *
 * Tunables: segment_bytes (S = ⌈m/Q / segment⌉ segments of a block; default one)
 * Rounds:   2 * min(Q - 1, 1) + (floor_log2(G) + floor_log2(M // G) + (S - 1) // 4 if M > 1 else 0)
 *           on G groups of M/G nodes of Q ranks
 * Messages: Q * (Q - 1) + (M - 1) * Q * (S + Q - 1)
 * Bytes:    (P - 1) * m
 * Between nodes:  (M - 1) * m
 * Between groups: (G - 1) * m
 * Cost: ⌈log2 M⌉ (α + m/Q β) between nodes, if a core can't drive the network by itself, else
 * ⌈log2 M⌉ (α + mβ) as with one lane; and about α + mβ within them, twice on the root's node.
 * Source: Träff, Hunold (2020), "Decomposing MPI collectives for exploiting multi-lane
 * communication", section III; from memory. There the lanes use MPI's own broadcast.
 */
#include "../common/topology/topology.h"
#include "../common/tree/blocks.h"
#include <stdlib.h>

/* The rank of a lane on the node of `leader`: the leader comes first, the others in their order. */
static int on_lane(const struct mpilab_topology *topology, int leader, int lane)
{
    const int begin = topology->node_begin[topology->node[leader]];
    const int before = topology->position[leader] - begin;
    if (lane == 0)
        return leader;
    return topology->order[begin + (lane <= before ? lane - 1 : lane)];
}

static struct mpilab_members seen_by(int rank, const struct mpilab_members *members)
{
    struct mpilab_members seen = {members->size, -1, members->rank};
    for (int i = 0; i < members->size; i++)
        if (members->rank[i] == rank)
            seen.self = i;
    return seen;
}

/* A lane is the tree of the nodes' leaders, with the lane's ranks in their places. */
static int lane_tree(const struct mpilab_topology *topology, const struct mpilab_levels *levels,
                     int lane, struct mpilab_tree *tree)
{
    const int leader = levels->node.rank[0];
    const struct mpilab_members groups = seen_by(leader, &levels->groups);
    const struct mpilab_members nodes = seen_by(leader, &levels->group_nodes);
    mpilab_begin_tree(tree);
    int err = mpilab_add_knomial(tree, &groups, 2);
    if (err == MPI_SUCCESS)
        err = mpilab_add_knomial(tree, &nodes, 2);
    if (tree->parent != MPI_PROC_NULL)
        tree->parent = on_lane(topology, tree->parent, lane);
    for (int i = 0; i < tree->children; i++)
        tree->child[i] = on_lane(topology, tree->child[i], lane);
    return err;
}

struct message {
    void *buffer;
    int count, lanes;
    MPI_Datatype datatype;
    MPI_Comm comm;
};

static int start_sending(const struct message *message, int lane, int dest, MPI_Request *request)
{
    const struct mpilab_window window = mpilab_window(lane, lane, message->lanes, message->count);
    return MPI_Isend(block(message->buffer, window.begin, 1, message->datatype), window.length,
                     message->datatype, dest, TAG, message->comm, request);
}

static int start_receiving(const struct message *message, int lane, int source,
                           MPI_Request *request)
{
    const struct mpilab_window window = mpilab_window(lane, lane, message->lanes, message->count);
    return MPI_Irecv(block(message->buffer, window.begin, 1, message->datatype), window.length,
                     message->datatype, source, TAG, message->comm, request);
}

/* On the root's node: every lane gets its block. */
static int hand_out(const struct message *message, const struct mpilab_members *node,
                    MPI_Request *requests)
{
    int err = MPI_SUCCESS, started = 0;
    if (node->self > 0 && node->self < message->lanes)
        err = start_receiving(message, node->self, node->rank[0], &requests[started++]);
    for (int lane = 1; node->self == 0 && lane < message->lanes && err == MPI_SUCCESS; lane++)
        err = start_sending(message, lane, node->rank[lane], &requests[started++]);
    return err == MPI_SUCCESS ? MPI_Waitall(started, requests, MPI_STATUSES_IGNORE) : err;
}

/* On every node: each rank with a block sends it to all others except the root, which has all. */
static int bring_together(const struct message *message, const struct mpilab_members *node,
                          int root, MPI_Request *requests)
{
    const int is_root = node->rank[node->self] == root;
    int err = MPI_SUCCESS, started = 0;
    for (int lane = 0; !is_root && lane < message->lanes && err == MPI_SUCCESS; lane++)
        if (lane != node->self)
            err = start_receiving(message, lane, node->rank[lane], &requests[started++]);
    for (int i = 0; node->self < message->lanes && i < node->size && err == MPI_SUCCESS; i++)
        if (i != node->self && node->rank[i] != root)
            err = start_sending(message, node->self, node->rank[i], &requests[started++]);
    return err == MPI_SUCCESS ? MPI_Waitall(started, requests, MPI_STATUSES_IGNORE) : err;
}

static int along_lane(const struct message *message, const struct mpilab_topology *topology,
                      const struct mpilab_levels *levels)
{
    const int lane = levels->node.self, lanes = message->lanes;
    if (lane >= lanes)
        return MPI_SUCCESS;
    /* All lanes are cut like the longest. */
    const int longest = message->count / lanes + (message->count % lanes > 0);
    const struct mpilab_segments cut =
        mpilab_cut(longest, message->datatype, mpilab_tuning.segment_bytes);
    const struct mpilab_window window = mpilab_window(lane, lane, lanes, message->count);
    struct mpilab_tree tree;
    const int err = lane_tree(topology, levels, lane, &tree);
    if (err != MPI_SUCCESS)
        return err;
    return mpilab_stream_down(&tree, block(message->buffer, window.begin, 1, message->datatype),
                              window.length, message->datatype, &cut, message->comm);
}

MPILAB_BCAST(multilane)
{
    const struct mpilab_topology *topology;
    const struct mpilab_levels *levels;
    int err = mpilab_topology_of(comm, &topology);
    if (err == MPI_SUCCESS)
        err = mpilab_levels_of(comm, root, &levels);
    if (err != MPI_SUCCESS)
        return err;

    const struct message message = {
        buffer, count, mpilab_smallest(topology->node_begin, topology->nodes), datatype, comm};
    MPI_Request *requests = malloc(2 * (size_t)levels->node.size * sizeof(MPI_Request));
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    if (levels->node.rank[0] == root)
        err = hand_out(&message, &levels->node, requests);
    if (err == MPI_SUCCESS)
        err = along_lane(&message, topology, levels);
    if (err == MPI_SUCCESS)
        err = bring_together(&message, &levels->node, root, requests);
    free(requests);
    return err;
}
