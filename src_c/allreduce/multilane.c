/* Multi-lane allreduce by levels: reduce-scatter within nodes, then between nodes, then between
 * groups, and the way back.
 *
 * On each node, as many ranks as the smallest node has take one part of the message each: rank j of
 * a node combines its ranks' parts j. The ranks j of all nodes are a *lane*, for that part. Those
 * of one group divide it further among as many of them as the group with the fewest nodes has;
 * those that then have the same piece, one in each group, divide it once more. So all links are
 * used at once, and none carries more than necessary. On the way back, the parts are combined in
 * the same way.
 *
 *   groups {0 1} {2 3}, all on one node a group, parts a and b: ab of all ranks -> AB, the result
 *   round 1   0 -b-> 1   1 -a-> 0   2 -b-> 3   3 -a-> 2      rank 0 has a of its group, rank 1 b
 *   round 2   0 -a2-> 2  2 -a1-> 0  1 -b2-> 3  3 -b1-> 1     rank 0 has A1, rank 2 A2
 *   round 3   0 -A1-> 2  2 -A2-> 0  1 -B1-> 3  3 -B2-> 1
 *   round 4   0 -A-> 1   1 -B-> 0   2 -A-> 3   3 -B-> 2
 *
 * Rounds:   2 * ((Q > 1) + (M > G) + (G > 1))
 * Messages: 2 * P * (Q + M // G + G - 3)
 * Bytes:    2 * (P - 1) * m
 * Between nodes:  2 * (M - 1) * m
 * Between groups: 2 * (G - 1) * m
 * Cost: 2 (G-1)/G mβ at the link of each group, and less at the links of hosts; (P-1)/P mγ with γ
 * per byte reduced: for long messages. A rank needs room for what others contribute to its part, up
 * to (Q-1)/Q m; more if nodes differ a lot. Operations that do not commute are left to recursive
 * doubling over all ranks in their order.
 * Source: Träff, Hunold (2019), "Decomposing collectives for exploiting multi-lane communication",
 * arXiv:1910.13373, with one more level.
 */
#include "../common/topology/topology.h"
#include "../common/tree/blocks.h"
#include <stdlib.h>

/* Ranks that divide a part of the message among the first `holders` of them. */
struct team {
    int *rank;
    int size, self, holders;
    struct mpilab_window whole; /* what they divide */
};
enum { TEAMS = 3 }; /* of a node, of a lane in a group, of a lane across groups */

struct data {
    const void *own; /* what this rank brings: `sendbuf` until its first result is in `recvbuf` */
    void *recvbuf;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
};

static struct mpilab_window part_of(const struct team *team, int holder)
{
    const struct mpilab_window part =
        mpilab_window(holder, holder, team->holders, team->whole.length);
    return (struct mpilab_window){team->whole.begin + part.begin, part.length};
}

static int start_sending(const struct team *team, const struct data *data, MPI_Request *requests,
                         int *started)
{
    int err = MPI_SUCCESS;
    for (int i = 0; i < team->holders && err == MPI_SUCCESS; i++) {
        const struct mpilab_window part = part_of(team, i);
        if (i != team->self)
            err = MPI_Isend(block(data->own, part.begin, 1, data->type), part.length, data->type,
                            team->rank[i], TAG, data->comm, &requests[(*started)++]);
    }
    return err;
}

/* After an error. No room is sent from, only the buffers of the call. */
static void abandon(MPI_Request *requests, int receiving, int started)
{
    mpilab_abandon(receiving, requests);
    mpilab_leave_sends(started - receiving, &requests[receiving]);
}

/* Combine what all of the team have of our part; the result is in `recvbuf`. */
static int combine(const struct team *team, struct data *data, const void *room,
                   MPI_Request *requests, int senders)
{
    const struct mpilab_window part = part_of(team, team->self);
    void *result = block(data->recvbuf, part.begin, 1, data->type);
    int err = MPI_SUCCESS;
    if (data->own != data->recvbuf)
        err = copy_local(block(data->own, part.begin, 1, data->type), part.length, data->type,
                         result, part.length, data->type);
    for (int i = 0; i < senders && err == MPI_SUCCESS; i++) {
        err = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(block(room, i, part.length, data->type), result, part.length,
                                   data->type, data->op);
    }
    return err;
}

/* Every rank sends each holder its part. A holder receives from one rank after another into
 * separate memory, and then has the team's result for its part. */
static int reduce_scatter(const struct team *team, struct data *data, MPI_Request *requests)
{
    const int holds = team->self < team->holders;
    struct mpilab_room room = {NULL, NULL};
    int err = MPI_SUCCESS, receiving = 0;
    if (holds) {
        const int length = part_of(team, team->self).length;
        err = mpilab_make_room(team->size - 1, length, data->type, &room);
        for (int i = 0; i < team->size && err == MPI_SUCCESS; i++) {
            if (i == team->self)
                continue;
            err = MPI_Irecv(block(room.origin, receiving, length, data->type), length, data->type,
                            team->rank[i], TAG, data->comm, &requests[receiving]);
            receiving++;
        }
    }
    int started = receiving;
    if (err == MPI_SUCCESS)
        err = start_sending(team, data, requests, &started);
    if (err == MPI_SUCCESS && holds)
        err = combine(team, data, room.origin, requests, receiving);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started - receiving, &requests[receiving], MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        abandon(requests, receiving, started);
    free(room.memory);
    data->own = data->recvbuf;
    return err;
}

/* Each holder hands its part of the result to all of the team. */
static int allgather(const struct team *team, const struct data *data, MPI_Request *requests)
{
    int err = MPI_SUCCESS, started = 0;
    for (int i = 0; i < team->holders && err == MPI_SUCCESS; i++) {
        const struct mpilab_window part = part_of(team, i);
        if (i != team->self)
            err = MPI_Irecv(block(data->recvbuf, part.begin, 1, data->type), part.length,
                            data->type, team->rank[i], TAG, data->comm, &requests[started++]);
    }
    const int receiving = started;
    for (int i = 0; team->self < team->holders && i < team->size && err == MPI_SUCCESS; i++) {
        const struct mpilab_window part = part_of(team, team->self);
        if (i != team->self)
            err = MPI_Isend(block(data->recvbuf, part.begin, 1, data->type), part.length,
                            data->type, team->rank[i], TAG, data->comm, &requests[started++]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        abandon(requests, receiving, started);
    return err;
}

/* The teams that this rank is in, from the narrowest to the widest; how many. */
static int find_teams(const struct mpilab_topology *topology, int rank, int count, int *memory,
                      struct team teams[TEAMS])
{
    const int *node_begin = topology->node_begin, *first_node = topology->first_node;
    const int node = topology->node[rank], group = mpilab_group_of(topology, rank);
    const int lane = topology->position[rank] - node_begin[node];
    const int place = node - first_node[group]; /* of its node in the group */
    struct team *team = &teams[0];
    *team = (struct team){memory,
                          node_begin[node + 1] - node_begin[node],
                          lane,
                          mpilab_smallest(node_begin, topology->nodes),
                          {0, count}};
    for (int i = 0; i < team->size; i++)
        team->rank[i] = topology->order[node_begin[node] + i];
    if (team->self >= team->holders)
        return 1;

    team = &teams[1];
    *team = (struct team){teams[0].rank + teams[0].size, first_node[group + 1] - first_node[group],
                          place, mpilab_smallest(first_node, topology->groups),
                          part_of(&teams[0], lane)};
    for (int i = 0; i < team->size; i++)
        team->rank[i] = topology->order[node_begin[first_node[group] + i] + lane];
    if (team->self >= team->holders)
        return 2;

    team = &teams[2];
    *team = (struct team){teams[1].rank + teams[1].size, topology->groups, group, topology->groups,
                          part_of(&teams[1], place)};
    for (int i = 0; i < team->size; i++)
        team->rank[i] = topology->order[node_begin[first_node[i] + place] + lane];
    return 3;
}

MPILAB_ALLREDUCE(multilane)
{
    int commutes, rank;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return allreduce_recursive_doubling(sendbuf, recvbuf, count, datatype, op, comm);

    const struct mpilab_topology *topology;
    int err = mpilab_topology_of(comm, &topology);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_rank(comm, &rank);
    /* No team is larger than the communicator; a rank exchanges with each other rank twice. */
    int *ranks = malloc(TEAMS * (size_t)topology->size * sizeof *ranks);
    const int most_requests = 2 * topology->size;
    MPI_Request *requests = malloc((size_t)most_requests * sizeof *requests);
    struct data data = {sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, datatype, op, comm};
    struct team teams[TEAMS];
    int count_teams = 0;
    if (ranks == NULL || requests == NULL) {
        err = MPI_ERR_NO_MEM;
    } else {
        mpilab_no_requests(most_requests, requests);
        count_teams = find_teams(topology, rank, count, ranks, teams);
    }
    for (int i = 0; i < count_teams && err == MPI_SUCCESS; i++)
        err = reduce_scatter(&teams[i], &data, requests);
    for (int i = count_teams - 1; i >= 0 && err == MPI_SUCCESS; i--)
        err = allgather(&teams[i], &data, requests);
    free(ranks);
    free(requests);
    return err;
}
