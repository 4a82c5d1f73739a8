/* What a rank does with other ranks' data in an alltoallv that is forwarded between nodes
 * (routes.h), and how much travels at a time.
 *
 * The ranks of this rank's node are its *local* ranks, numbered by their place in topology->order;
 * all other ranks are remote, and numbered likewise.
 */
#ifndef MPILAB_PLAN_H
#define MPILAB_PLAN_H

#include "../topology/topology.h"
#include "exchange.h"

struct mpilab_route {
    /* The rank on its node that carries what `rank` sends to other nodes; possibly `rank`
     * itself. */
    int (*carrier)(const struct mpilab_topology *topology, int rank);
    /* The rank of `node` to which a carrier sends the data for that node. */
    int (*partner)(const struct mpilab_topology *topology, int carrier, int node);
    int one_by_one; /* one destination at a time, in the order of the topology, instead of all */
};

/* Where data is stored in transit, one area of memory after another (travel.h). */
enum area { UP, OUTGOING, INCOMING, DOWNWARD, AREAS };

/* A first piece is piggybacked on the counts if it is all the data that its rank has for other
 * nodes. With as many bytes of counts, Open MPI sends such a header eagerly: only for messages of
 * more than 4096 bytes within a node does it first ask whether the receiver is ready. A multiple of
 * the size of a count. */
enum { MOST_PIGGYBACKED = 2048 };

struct mpilab_plan {
    const struct mpilab_topology *topology;
    const struct mpilab_route *route;
    struct mpilab_exchange *exchange;
    int rank, node, begin; /* `begin` is where the node begins in topology->order */
    int locals, self;      /* the ranks of the node, and this rank's number among them */
    int remote;            /* how many remote ranks there are */
    int window;            /* this many destinations at a time */
    long budget;
    long long piece; /* this many bytes of a pair at a time */
    struct mpilab_staging staging;

    /* Remote ranks, by the local rank that distributes their data (local rank i: from
     * source_begin[i] on), then by the remote carrier that sends it. */
    int *source, *source_begin, *feeder;

    /* Bytes of the pairs of each local rank: from it to each remote rank, NULL if this rank does
     * not carry them; and from each source whose data this rank distributes, to the local rank.
     * headers_exchange fills them in. */
    const long long **out, **in;
    long long *own_out, *own_in; /* this rank's own: to each remote rank, from each source */
    long long *headers_sent, *counts_received;
    MPI_Request *header_sends; /* this many are pending */
    int header_send_count;

    /* Headers from local ranks that are not unpacked yet, and how much room they have for data. */
    char *headers;
    long piggyback_room;
};

/* Begin a plan, on more than one node, with what follows from the topology alone: no messages, and
 * no memory to be freed. Returns MPI_ERR_ARG on all ranks if the budget is too small. */
int plan_begin(const struct mpilab_topology *topology, const struct mpilab_route *route,
               struct mpilab_exchange *exchange, struct mpilab_plan *plan);
/* Allocate memory for the rest, and find the sources. Free the plan even after an error. */
int plan_take_memory(struct mpilab_plan *plan);
void plan_free(struct mpilab_plan *plan);
/* Free the memory of the headers, if there are any. */
void plan_free_headers(struct mpilab_plan *plan);

int plan_rank_at(const struct mpilab_plan *plan, int place); /* in the topology's order */
int plan_local_rank(const struct mpilab_plan *plan, int local);

/* How many sources this rank distributes data for, and the first of them. */
static inline int plan_served(const struct mpilab_plan *plan)
{
    return plan->source_begin[plan->self + 1] - plan->source_begin[plan->self];
}
static inline const int *plan_feeders(const struct mpilab_plan *plan)
{
    return plan->feeder + plan->source_begin[plan->self];
}

/* What travels together: one piece of each pair, from byte `begin` on, to the ranks at places
 * `first` up to but not including `last` of the topology's order. */
struct task {
    int first, last;
    long long begin;
};

/* Tasks are numbered identically on all ranks; this rank takes part in the first task_count of
 * them. */
long long task_count(const struct mpilab_plan *plan);
struct task task_of(const struct mpilab_plan *plan, long long number);

/* Places in the topology's order, or local ranks: `first` up to but not including `last`. */
struct span {
    int first, last;
};
struct span task_places(const struct task *task, int first, int last); /* the task's among these */
struct span task_node(const struct mpilab_plan *plan, const struct task *task, int node);
struct span task_locals(const struct mpilab_plan *plan, const struct task *task);
int task_is_for_us(const struct mpilab_plan *plan, const struct task *task);

/* The bytes of a pair that travel in this task, if the pair has `bytes` in all. */
long long bytes_of_pair(const struct mpilab_plan *plan, const struct task *task, long long bytes);

/* The bytes that travel in this task from the local rank with this `row` of mpilab_plan.out, to
 * places none of which is on this node; ... to all remote ranks. */
long long bytes_to_places(const struct mpilab_plan *plan, const struct task *task,
                          const long long *row, struct span places);
long long bytes_up(const struct mpilab_plan *plan, const struct task *task, const long long *row);
/* ... from all local ranks whose data this rank carries, to a node. */
long long bytes_out(const struct mpilab_plan *plan, const struct task *task, int node);
/* ... from some of the sources that this rank distributes data for, to all local ranks; from all,
 * to one. */
long long bytes_in(const struct mpilab_plan *plan, const struct task *task, int first, int last);
long long bytes_down(const struct mpilab_plan *plan, const struct task *task, int local);
/* ... to this rank, from the sources that a local rank distributes data for. */
long long bytes_handed(const struct mpilab_plan *plan, const struct task *task, int local);

/* Pack this rank's own data for these places to `*to`, and advance it; for all remote ranks. */
int plan_pack(const struct mpilab_plan *plan, const struct task *task, struct span places,
              char **to);
int plan_pack_up(const struct mpilab_plan *plan, const struct task *task, char *to);
/* Put the data that arrived for this rank itself into its receive buffer. */
int plan_unpack(const struct mpilab_plan *plan, const struct task *task, int source,
                const char **from);

#endif
