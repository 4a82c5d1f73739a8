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
 * The message may travel in segments, each one step behind the one before: while one of them
 * crosses the links between groups, others are on their way within nodes and groups.
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   2 * ((Q > 1) + (M > G) + (G > 1)) + S - 1 if P > 1 else 0
 * Messages: 2 * P * (Q + M // G + G - 3) * S
 * Bytes:    2 * (P - 1) * m
 * Between nodes:  2 * (M - 1) * m
 * Between groups: 2 * (G - 1) * m
 * Cost: 2 (G-1)/G mβ at the link of each group, and less at the links of hosts, whose time segments
 * hide; (P-1)/P mγ with γ per byte reduced: for long messages. A rank needs room for what others
 * contribute to its part, up to (Q-1)/Q m; more if nodes differ a lot. Operations that do not
 * commute are left to recursive doubling over all ranks in their order.
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
};
enum { TEAMS = 3 }; /* of a node, of a lane in a group, of a lane across groups */

struct data {
    const void *own; /* what this rank brings: `sendbuf`, or `recvbuf` if in place */
    void *recvbuf;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
};

/* What a team does in one step for one segment: reduce-scatter or allgather. */
struct exchange {
    const struct team *team;
    const void *own;            /* where this rank's data is: `sendbuf` or `recvbuf` */
    struct mpilab_window whole; /* what the team divides */
    struct mpilab_room room;    /* for what others contribute to this rank's part */
    MPI_Request *requests;      /* [2 size] receives first */
    int receiving, started;
};

static struct mpilab_window part_of(const struct team *team, struct mpilab_window whole, int holder)
{
    const struct mpilab_window part = mpilab_window(holder, holder, team->holders, whole.length);
    return (struct mpilab_window){whole.begin + part.begin, part.length};
}

static int holds(const struct exchange *exchange)
{
    return exchange->team->self < exchange->team->holders;
}

/* Every rank sends each holder its part. A holder receives from the others into separate memory. */
static int start_reduce_scatter(struct exchange *exchange, const struct data *data)
{
    const struct team *team = exchange->team;
    int err = MPI_SUCCESS;
    if (holds(exchange)) {
        const int length = part_of(team, exchange->whole, team->self).length;
        err = mpilab_make_room(team->size - 1, length, data->type, &exchange->room);
        for (int i = 0; i < team->size && err == MPI_SUCCESS; i++) {
            if (i == team->self)
                continue;
            void *const place =
                block(exchange->room.origin, exchange->receiving, length, data->type);
            err = MPI_Irecv(place, length, data->type, team->rank[i], TAG, data->comm,
                            &exchange->requests[exchange->receiving++]);
        }
    }
    exchange->started = exchange->receiving;
    for (int i = 0; i < team->holders && err == MPI_SUCCESS; i++) {
        const struct mpilab_window part = part_of(team, exchange->whole, i);
        if (i != team->self)
            err =
                MPI_Isend(block(exchange->own, part.begin, 1, data->type), part.length, data->type,
                          team->rank[i], TAG, data->comm, &exchange->requests[exchange->started++]);
    }
    return err;
}

/* Combine what all of the team have of our part; the result is in `recvbuf`. */
static int combine(const struct exchange *exchange, const struct data *data)
{
    const struct mpilab_window part =
        part_of(exchange->team, exchange->whole, exchange->team->self);
    void *result = block(data->recvbuf, part.begin, 1, data->type);
    int err = MPI_SUCCESS;
    if (exchange->own != data->recvbuf)
        err = copy_local(block(exchange->own, part.begin, 1, data->type), part.length, data->type,
                         result, part.length, data->type);
    for (int i = 0; i < exchange->receiving && err == MPI_SUCCESS; i++) {
        err = MPI_Wait(&exchange->requests[i], MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(block(exchange->room.origin, i, part.length, data->type), result,
                                   part.length, data->type, data->op);
    }
    return err;
}

/* Each holder hands its part of the result to all of the team. */
static int start_allgather(struct exchange *exchange, const struct data *data)
{
    const struct team *team = exchange->team;
    int err = MPI_SUCCESS;
    for (int i = 0; i < team->holders && err == MPI_SUCCESS; i++) {
        const struct mpilab_window part = part_of(team, exchange->whole, i);
        if (i != team->self)
            err = MPI_Irecv(block(data->recvbuf, part.begin, 1, data->type), part.length,
                            data->type, team->rank[i], TAG, data->comm,
                            &exchange->requests[exchange->receiving++]);
    }
    exchange->started = exchange->receiving;
    const struct mpilab_window part = part_of(team, exchange->whole, team->self);
    for (int i = 0; holds(exchange) && i < team->size && err == MPI_SUCCESS; i++)
        if (i != team->self)
            err =
                MPI_Isend(block(data->recvbuf, part.begin, 1, data->type), part.length, data->type,
                          team->rank[i], TAG, data->comm, &exchange->requests[exchange->started++]);
    return err;
}

/* After an error. No room is sent from, only the buffers of the call. */
static void abandon(struct exchange *exchange)
{
    const int sends = exchange->started - exchange->receiving;
    mpilab_abandon(exchange->receiving, exchange->requests);
    mpilab_leave_sends(sends, &exchange->requests[exchange->receiving]);
}

/* The teams that this rank is in, from the narrowest to the widest; how many. */
static int find_teams(const struct mpilab_topology *topology, int rank, int *memory,
                      struct team teams[TEAMS])
{
    const int *node_begin = topology->node_begin, *first_node = topology->first_node;
    const int node = topology->node[rank], group = mpilab_group_of(topology, rank);
    const int lane = topology->position[rank] - node_begin[node];
    const int place = node - first_node[group]; /* of its node in the group */
    struct team *team = &teams[0];
    *team = (struct team){memory, node_begin[node + 1] - node_begin[node], lane,
                          mpilab_smallest(node_begin, topology->nodes)};
    for (int i = 0; i < team->size; i++)
        team->rank[i] = topology->order[node_begin[node] + i];
    if (team->self >= team->holders)
        return 1;

    team = &teams[1];
    *team = (struct team){teams[0].rank + teams[0].size, first_node[group + 1] - first_node[group],
                          place, mpilab_smallest(first_node, topology->groups)};
    for (int i = 0; i < team->size; i++)
        team->rank[i] = topology->order[node_begin[first_node[group] + i] + lane];
    if (team->self >= team->holders)
        return 2;

    team = &teams[2];
    *team = (struct team){teams[1].rank + teams[1].size, topology->groups, group, topology->groups};
    for (int i = 0; i < team->size; i++)
        team->rank[i] = topology->order[node_begin[first_node[i] + place] + lane];
    return 3;
}

/* What all ranks do with a segment, phase by phase: reduce-scatter in one team after the other, then
 * allgather in the reverse order. Levels at which no rank has a partner are left out, on all
 * ranks. */
struct plan {
    struct team teams[TEAMS];
    int in;                         /* how many of them this rank is in */
    int phases, team[2 * TEAMS];    /* the team of each phase */
    struct exchange now[2 * TEAMS]; /* what is under way: one segment in each phase */
};

static void list_phases(const struct mpilab_topology *topology, struct plan *plan)
{
    const int has_partners[TEAMS] = {topology->size > topology->nodes,
                                     topology->nodes > topology->groups, topology->groups > 1};
    plan->phases = 0;
    for (int i = 0; i < TEAMS; i++)
        if (has_partners[i])
            plan->team[plan->phases++] = i;
    for (int i = plan->phases - 1; i >= 0; i--)
        plan->team[plan->phases++] = plan->team[i];
}

/* The part of a segment that a team of this rank divides: what is left to it of each narrower
 * one's. */
static struct mpilab_window whole_of(const struct plan *plan, int team,
                                     struct mpilab_window segment)
{
    for (int i = 0; i < team; i++)
        segment = part_of(&plan->teams[i], segment, plan->teams[i].self);
    return segment;
}

static int start(struct plan *plan, int phase, struct mpilab_window segment,
                 const struct data *data)
{
    struct exchange *const exchange = &plan->now[phase];
    const int team = plan->team[phase];
    exchange->receiving = exchange->started = 0;
    exchange->room = (struct mpilab_room){NULL, NULL};
    if (team >= plan->in)
        return MPI_SUCCESS;
    exchange->team = &plan->teams[team];
    exchange->whole = whole_of(plan, team, segment);
    exchange->own = phase == 0 ? data->own : data->recvbuf;
    return phase < plan->phases / 2 ? start_reduce_scatter(exchange, data)
                                    : start_allgather(exchange, data);
}

static int finish(struct plan *plan, int phase, const struct data *data)
{
    struct exchange *const exchange = &plan->now[phase];
    int err = MPI_SUCCESS;
    if (plan->team[phase] >= plan->in)
        return MPI_SUCCESS;
    if (phase < plan->phases / 2 && holds(exchange))
        err = combine(exchange, data);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(exchange->started, exchange->requests, MPI_STATUSES_IGNORE);
    if (err == MPI_SUCCESS) {
        free(exchange->room.memory);
        exchange->room.memory = NULL;
        exchange->receiving = exchange->started = 0;
    }
    return err;
}

/* In step t, segment s is in phase t - s. */
static int run(struct plan *plan, const struct mpilab_segments *cut, int count,
               const struct data *data)
{
    int err = MPI_SUCCESS;
    for (int step = 0; step < cut->pieces + plan->phases - 1 && err == MPI_SUCCESS; step++) {
        const int newest = step < cut->pieces ? 0 : step - cut->pieces + 1;
        const int oldest = step < plan->phases ? step : plan->phases - 1;
        for (int phase = newest; phase <= oldest && err == MPI_SUCCESS; phase++) {
            const int piece = step - phase;
            const struct mpilab_window segment = {piece * cut->elements,
                                                  mpilab_piece(cut, piece, count)};
            err = start(plan, phase, segment, data);
        }
        for (int phase = newest; phase <= oldest && err == MPI_SUCCESS; phase++)
            err = finish(plan, phase, data);
    }
    for (int phase = 0; phase < plan->phases && err != MPI_SUCCESS; phase++) {
        abandon(&plan->now[phase]);
        free(plan->now[phase].room.memory);
    }
    return err;
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
    if (topology->size == 1)
        return place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);

    /* No team is larger than the communicator. */
    int *ranks = malloc(TEAMS * (size_t)topology->size * sizeof *ranks);
    if (ranks == NULL)
        return MPI_ERR_NO_MEM;
    struct plan plan = {.in = 0};
    plan.in = find_teams(topology, rank, ranks, plan.teams);
    list_phases(topology, &plan);
    int most_requests = 0; /* a rank sends each of a team a message, and gets one */
    for (int i = 0; i < plan.in; i++)
        most_requests += 4 * plan.teams[i].size;
    MPI_Request *requests = malloc((size_t)most_requests * sizeof *requests);
    if (requests == NULL) {
        err = MPI_ERR_NO_MEM;
    } else {
        const struct data data = {sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, datatype,
                                  op, comm};
        const struct mpilab_segments cut = mpilab_cut(count, datatype, mpilab_tuning.segment_bytes);
        MPI_Request *next = requests;
        mpilab_no_requests(most_requests, requests);
        for (int phase = 0; phase < plan.phases; phase++) {
            plan.now[phase].requests = next;
            if (plan.team[phase] < plan.in)
                next += 2 * plan.teams[plan.team[phase]].size;
        }
        err = run(&plan, &cut, count, &data);
    }
    free(ranks);
    free(requests);
    return err;
}
