/* Pipelined allgather by levels: a ring of groups, a chain of nodes in each of them, a chain of
 * ranks in each of these.
 *
 * Every block is a separate message, and every rank receives it once. Blocks go up to the leader of
 * their node and of their group. Group leaders pass each block on to the next group of the ring as
 * soon as it arrives; in the same way it goes from node to node of the group and from rank to rank
 * of the node. All ranks of a group receive the blocks in the same order: those of their own group,
 * of the group to the left, of the next one to the left, and so on. A leader's own block is the
 * first to go, so the links between groups are busy from the start.
 *
 *   ranks 0 1 on a node of group a, 2 on another node, 3 in group b      number = block sent
 *   round 1   1 -1-> 0   2 -2-> 0   0 -0-> 3   0 -0-> 2   0 -0-> 1   3 -3-> 0
 *   round 2   0 -1-> 3   0 -1-> 2   0 -2-> 3   0 -2-> 1   0 -3-> 2   0 -3-> 1
 *
 * Rounds:   G + M // G + Q - 3 + max(0, (G > 1) + (M > G) + (Q > 1) - 1)
 * Messages: P * (P - 1)
 * Bytes:    P * (P - 1) * m
 * Between nodes:  (M - 1) * P * m
 * Between groups: (G - 1) * P * m
 * Cost: (P-U)mβ between groups with U ranks a group, and little else: the minimum for any
 * allgather, without a pause. For long blocks; the flat ring, even in the order of places, carries
 * (P-1)m.
 * Source: the ring of Thakur, Rabenseifner, Gropp (2005), section 4.1, with the levels of Karonis
 * et al. (2000), "Exploiting hierarchy in parallel computer networks".
 */
#include "../common/topology/topology.h"
#include <stdlib.h>

/* The neighbors of a rank; MPI_PROC_NULL if there is none, or if this rank does not communicate
 * with it. */
struct neighbors {
    const struct mpilab_topology *topology;
    int rank, node, group, right_group;
    int up;         /* leader of the node, for whom leads it of the group */
    int next;       /* rank of the node */
    int next_node;  /* leader of the group's next node */
    int left;       /* leader of the group to the left */
    int right;      /* leader of the group to the right */
    int previous;   /* who passes on to us what does not come up to us */
    int leads_node; /* is this rank the first of its node? */
};

static struct neighbors neighbors_of(const struct mpilab_topology *topology, int rank)
{
    const int *order = topology->order, *node_begin = topology->node_begin;
    const int *group_begin = topology->group_begin;
    const int node = topology->node[rank], group = mpilab_group_of(topology, rank);
    const int place = topology->position[rank], groups = topology->groups;
    const int leads_node = place == node_begin[node], leads_group = place == group_begin[group];
    const int left_group = (group + groups - 1) % groups, right_group = (group + 1) % groups;
    struct neighbors at = {.topology = topology,
                           .rank = rank,
                           .node = node,
                           .group = group,
                           .right_group = right_group,
                           .up = MPI_PROC_NULL,
                           .next = MPI_PROC_NULL,
                           .next_node = MPI_PROC_NULL,
                           .left = MPI_PROC_NULL,
                           .right = MPI_PROC_NULL,
                           .leads_node = leads_node};
    if (!leads_group)
        at.up = order[leads_node ? group_begin[group] : node_begin[node]];
    if (place + 1 < node_begin[node + 1])
        at.next = order[place + 1];
    if (leads_node && node + 1 < topology->first_node[group + 1])
        at.next_node = order[node_begin[node + 1]];
    if (leads_group && groups > 1) {
        at.left = order[group_begin[left_group]];
        at.right = order[group_begin[right_group]];
    }
    at.previous = !leads_node   ? order[place - 1]
                  : leads_group ? at.left
                                : order[node_begin[node - 1]];
    return at;
}

/* The rank from which this rank gets the block of another rank, `from`. */
static int source_of(const struct neighbors *at, int from)
{
    const struct mpilab_topology *topology = at->topology;
    if (at->leads_node && topology->node[from] == at->node)
        return from;
    if (at->up == MPI_PROC_NULL && mpilab_group_of(topology, from) == at->group)
        return topology->order[topology->node_begin[topology->node[from]]];
    return at->previous;
}

/* What a rank sends and receives: at most four copies of each block go out. */
struct exchange {
    struct neighbors at;
    void *recvbuf;
    int count, sent;
    MPI_Datatype type;
    MPI_Comm comm;
    MPI_Request *incoming; /* [P] of each rank's block */
    MPI_Request *outgoing; /* [4 P] */
};

static int take_in(struct exchange *exchange, int from)
{
    return MPI_Wait(&exchange->incoming[from], MPI_STATUS_IGNORE);
}

static int start_sending(struct exchange *exchange, int from, int dest)
{
    if (dest == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return MPI_Isend(block(exchange->recvbuf, from, exchange->count, exchange->type),
                     exchange->count, exchange->type, dest, TAG, exchange->comm,
                     &exchange->outgoing[exchange->sent++]);
}

/* The i-th rank whose block the ranks of this group take: group by group to the left, from their
 * own one on. */
static int turn(const struct neighbors *at, int i)
{
    const struct mpilab_topology *topology = at->topology;
    int group = at->group;
    for (;;) {
        const int begin = topology->group_begin[group], end = topology->group_begin[group + 1];
        if (i < end - begin)
            return topology->order[begin + i];
        i -= end - begin;
        group = (group + topology->groups - 1) % topology->groups;
    }
}

static int start_receiving(struct exchange *exchange)
{
    const struct neighbors *at = &exchange->at;
    int err = MPI_SUCCESS;
    exchange->incoming[at->rank] = MPI_REQUEST_NULL;
    for (int i = 0; i < at->topology->size && err == MPI_SUCCESS; i++) {
        const int from = turn(at, i);
        if (from != at->rank)
            err = MPI_Irecv(block(exchange->recvbuf, from, exchange->count, exchange->type),
                            exchange->count, exchange->type, source_of(at, from), TAG,
                            exchange->comm, &exchange->incoming[from]);
    }
    return err;
}

/* Its own block and, on the leader of a node, those of its other ranks. */
static int send_up(struct exchange *exchange)
{
    const struct neighbors *at = &exchange->at;
    const struct mpilab_topology *topology = at->topology;
    const int place = topology->position[at->rank];
    const int end = at->leads_node ? topology->node_begin[at->node + 1] : place + 1;
    int err = MPI_SUCCESS;
    for (int i = place; i < end && at->up != MPI_PROC_NULL && err == MPI_SUCCESS; i++) {
        err = take_in(exchange, topology->order[i]);
        if (err == MPI_SUCCESS)
            err = start_sending(exchange, topology->order[i], at->up);
    }
    return err;
}

/* A block goes to each neighbor that is further from its rank than this one. */
static int pass_on(struct exchange *exchange)
{
    const struct neighbors *at = &exchange->at;
    const struct mpilab_topology *topology = at->topology;
    int err = MPI_SUCCESS;
    for (int i = 0; i < topology->size && err == MPI_SUCCESS; i++) {
        const int from = turn(at, i);
        err = take_in(exchange, from);
        if (err == MPI_SUCCESS && mpilab_group_of(topology, from) != at->right_group)
            err = start_sending(exchange, from, at->right);
        if (err == MPI_SUCCESS && topology->node[from] != at->node + 1)
            err = start_sending(exchange, from, at->next_node);
        if (err == MPI_SUCCESS && from != at->next)
            err = start_sending(exchange, from, at->next);
    }
    return err;
}

MPILAB_ALLGATHER(pipelined)
{
    const struct mpilab_topology *topology;
    int rank, err = mpilab_topology_of(comm, &topology);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_rank(comm, &rank);
    MPI_Request *requests = malloc(5 * (size_t)topology->size * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    struct exchange exchange = {
        neighbors_of(topology, rank), recvbuf, recvcount, 0, recvtype, comm, requests,
        requests + topology->size};
    err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    if (err == MPI_SUCCESS)
        err = start_receiving(&exchange);
    if (err == MPI_SUCCESS)
        err = send_up(&exchange);
    if (err == MPI_SUCCESS)
        err = pass_on(&exchange);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(exchange.sent, exchange.outgoing, MPI_STATUSES_IGNORE);
    free(requests);
    return err;
}
