/* What a rank has to do with the data of others in an alltoallv that goes between nodes by way of
 * other ranks (routes.h), and how much of everything travels at a time.
 *
 * The ranks of this rank's node are its *local* ranks, numbered by their place in topology->order;
 * all other ranks are remote, and numbered likewise.
 */
#ifndef MPILAB_PLAN_H
#define MPILAB_PLAN_H

#include "../topology/topology.h"
#include "exchange.h"

struct mpilab_route {
    /* The rank of its node that takes out what `rank` sends to other nodes; maybe itself. */
    int (*carrier)(const struct mpilab_topology *topology, int rank);
    /* The rank of `node` to which a carrier hands what is for that node. */
    int (*partner)(const struct mpilab_topology *topology, int carrier, int node);
    int one_by_one; /* one destination at a time, in the order of the topology, instead of all */
};

/* Where data lie on their way, one area of memory after the other (travel.h). */
enum area { UP, OUTGOING, INCOMING, DOWNWARD, AREAS };

/* A first piece is piggybacked on the counts where this is all that its rank has for other nodes.
 * With as many bytes of counts, Open MPI sends such a header at once: before a message of more than
 * 4096 within a node, it asks whether the receiver is there. It is a multiple of what a count takes. */
enum { MOST_PIGGYBACKED = 2048 };

struct mpilab_plan {
    const struct mpilab_topology *topology;
    const struct mpilab_route *route;
    struct mpilab_exchange *exchange;
    int rank, node, begin; /* `begin` is where the node begins in topology->order */
    int locals, self;      /* the ranks of the node, and which of them this one is */
    int remote;            /* how many remote ranks there are */
    int window;            /* so many destinations at a time */
    long budget;
    long long piece; /* so many bytes of a pair at a time */
    struct mpilab_staging staging;

    /* Remote ranks, by the local rank that hands out what comes from them (local rank i: from
     * source_begin[i] on), and then by the remote carrier that it comes by. */
    int *source, *source_begin, *feeder;

    /* Bytes of the first local rank's pairs, and so on: from the local rank to each remote rank,
     * NULL if this rank does not carry them; from each source that this rank hands out for, to the
     * local rank. headers_exchange fills them in. */
    const long long **out, **in;
    long long *own_out, *own_in; /* this rank's own: to each remote rank, from each source */
    long long *headers_sent, *counts_received;
    MPI_Request *header_sends; /* that are under way: so many */
    int header_send_count;

    /* Headers of local ranks that are not unpacked yet, and how much room they have for data. */
    char *headers;
    long piggyback_room;
};

/* Begin a plan, on more than one node: what follows from the topology alone, without messages or
 * memory to be freed. MPI_ERR_ARG, on all ranks, if the budget is too small. */
int plan_begin(const struct mpilab_topology *topology, const struct mpilab_route *route,
               struct mpilab_exchange *exchange, struct mpilab_plan *plan);
/* Take memory for the rest, and find the sources. Free it also after an error. */
int plan_take_memory(struct mpilab_plan *plan);
void plan_free(struct mpilab_plan *plan);
/* Give the memory of headers back; there may be none. */
void plan_free_headers(struct mpilab_plan *plan);

int plan_rank_at(const struct mpilab_plan *plan, int place); /* in the topology's order */
int plan_local_rank(const struct mpilab_plan *plan, int local);

/* How many sources this rank hands out for, and the first of them. */
static inline int plan_served(const struct mpilab_plan *plan)
{
    return plan->source_begin[plan->self + 1] - plan->source_begin[plan->self];
}
static inline const int *plan_feeders(const struct mpilab_plan *plan)
{
    return plan->feeder + plan->source_begin[plan->self];
}

/* What travels together: of each pair the bytes from `begin` on, as many as a piece has, to the
 * ranks from place `first` to before place `last` of the topology's order. */
struct task {
    int first, last;
    long long begin;
};

/* Tasks are numbered in the same way on all ranks; these are the ones that this rank has any part
 * in: as many from 0 on. */
long long task_count(const struct mpilab_plan *plan);
struct task task_of(const struct mpilab_plan *plan, long long number);

/* Some places of the topology's order, or some local ranks: from `first` to before `last`. */
struct span {
    int first, last;
};
struct span task_places(const struct task *task, int first, int last); /* those among these */
struct span task_node(const struct mpilab_plan *plan, const struct task *task, int node);
struct span task_locals(const struct mpilab_plan *plan, const struct task *task);
int task_is_for_us(const struct mpilab_plan *plan, const struct task *task);

/* The bytes of a pair that travel now, if it has so many in all. */
long long bytes_of_pair(const struct mpilab_plan *plan, const struct task *task, long long bytes);

/* The bytes that travel now from a local rank, of which `row` is the one in mpilab_plan.out, to
 * places none of which is on this node; ... to all remote ranks. */
long long bytes_to_places(const struct mpilab_plan *plan, const struct task *task,
                          const long long *row, struct span places);
long long bytes_up(const struct mpilab_plan *plan, const struct task *task, const long long *row);
/* ... from all local ranks whose data this rank carries, to a node. */
long long bytes_out(const struct mpilab_plan *plan, const struct task *task, int node);
/* ... from some of the sources that this rank hands out for, to all local ranks; from all, to one. */
long long bytes_in(const struct mpilab_plan *plan, const struct task *task, int first, int last);
long long bytes_down(const struct mpilab_plan *plan, const struct task *task, int local);
/* ... to this rank, from those sources that a local rank hands out for. */
long long bytes_handed(const struct mpilab_plan *plan, const struct task *task, int local);

/* Put what this rank itself sends to these places behind `*to`; to all remote ones. */
int plan_pack(const struct mpilab_plan *plan, const struct task *task, struct span places,
              char **to);
int plan_pack_up(const struct mpilab_plan *plan, const struct task *task, char *to);
/* Put what has come for this rank itself into its receive buffer. */
int plan_unpack(const struct mpilab_plan *plan, const struct task *task, int source,
                const char **from);

#endif
