/* An alltoallv whose data travel between nodes by way of other ranks.
 *
 *   node A                                   node B
 *   i --- up ---> carrier === across ===> partner --- down ---> j
 *
 * Blocks for ranks of the own node go straight. All others go in *pieces*: at most so many bytes of
 * a pair at a time that no rank ever holds more than its budget of data for others, however much is
 * exchanged. How many these are follows from the topology alone, so that nobody has to ask: few
 * large blocks are cut as finely as if all were large. While a piece goes across, the next one goes
 * up and the one before goes down.
 *
 * Who passes data on has to know how much there is for whom. That is told within a node only: each
 * rank knows what it will receive, so no counts go between nodes.
 */
#ifndef MPILAB_ROUTES_H
#define MPILAB_ROUTES_H

#include "../topology/topology.h"
#include "exchange.h"

struct mpilab_route {
    /* The rank of its node that takes out what `rank` sends to other nodes; maybe itself. */
    int (*carrier)(const struct mpilab_topology *topology, int rank);
    /* The rank of `node` to which a carrier hands what is for that node. */
    int (*partner)(const struct mpilab_topology *topology, int carrier, int node);
    int one_by_one; /* one destination at a time, in the order of the topology, instead of all */
};

/* The lowest rank of each node as carrier, and as partner. */
int mpilab_leader_of(const struct mpilab_topology *topology, int rank);
int mpilab_leader_there(const struct mpilab_topology *topology, int carrier, int node);

/* A call of MPI_Alltoallv by this route. MPI_ERR_ARG, on all ranks, where the budget
 * (mpilab_tuning.budget_bytes) has no room for one byte of each pair: then no message was sent. */
int mpilab_exchange_by(const struct mpilab_route *route, const void *sendbuf,
                       const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                       void *recvbuf, const int recvcounts[], const int rdispls[],
                       MPI_Datatype recvtype, MPI_Comm comm);

/* --- plan.c: what this rank has to do with the data of others. Its *mates* are the ranks of its
 * node, numbered by their place in topology->order; all other ranks are remote, and numbered
 * likewise. */
struct mpilab_plan {
    const struct mpilab_topology *topology;
    const struct mpilab_route *route;
    struct mpilab_exchange *exchange;
    int rank, node, begin, mates, self; /* `begin` is where the node begins in topology->order */
    int remote;                         /* how many remote ranks there are */
    int window;                         /* so many destinations at a time */
    long budget;
    long long piece; /* so many bytes of a pair at a time */
    struct mpilab_staging staging;

    /* Remote ranks, by the mate that hands out what comes from them (mate i: from source_begin[i]
     * on), and then by the remote carrier that it comes by. */
    int *source, *source_begin, *feeder;

    /* Bytes of the first mate's pairs, and so on: from the mate to each remote rank, NULL if this
     * rank does not carry them; from each source that this rank hands out for, to the mate. */
    const long long **out, **in;
    long long *own_out, *own_in; /* this rank's own: to each remote rank, from each source */
    long long *told, *heard;
    MPI_Request *telling; /* sends from `told` that are under way: so many */
    int tellings;

    /* Letters of mates that are not opened yet, and how much room there is for what rides. */
    char *letters;
    long riding;
};

/* Begin a plan, on more than one node: what follows from the topology alone, without messages or
 * memory to be freed. MPI_ERR_ARG, on all ranks, if the budget is too small. */
int mpilab_begin_plan(const struct mpilab_topology *topology, const struct mpilab_route *route,
                      struct mpilab_exchange *exchange, struct mpilab_plan *plan);
/* Fill in the rest, which takes messages within the node: collective. Free it also after an error.
 */
int mpilab_tell_plan(struct mpilab_plan *plan);
void mpilab_free_plan(struct mpilab_plan *plan);

/* How many sources this rank hands out for, and the first of them. */
static inline int mpilab_served(const struct mpilab_plan *plan)
{
    return plan->source_begin[plan->self + 1] - plan->source_begin[plan->self];
}
static inline const int *mpilab_feeders(const struct mpilab_plan *plan)
{
    return plan->feeder + plan->source_begin[plan->self];
}

/* --- travel.c: what the plan is for. It also waits for all that is being told. */
int mpilab_travel(struct mpilab_plan *plan);

#endif
