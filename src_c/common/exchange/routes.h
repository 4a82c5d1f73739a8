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
 *
 * exchange.h (buffers) <- plan.h (who passes on what) <- headers.h (counts) <- travel.h (data) <- here
 */
#ifndef MPILAB_ROUTES_H
#define MPILAB_ROUTES_H

#include "plan.h"

/* The lowest rank of each node as carrier, and as partner. */
int mpilab_leader_of(const struct mpilab_topology *topology, int rank);
int mpilab_leader_there(const struct mpilab_topology *topology, int carrier, int node);

/* A call of MPI_Alltoallv by this route. MPI_ERR_ARG, on all ranks, where the budget
 * (mpilab_tuning.budget_bytes) has no room for one byte of each pair: then no message was sent. */
int mpilab_exchange_by(const struct mpilab_route *route, const void *sendbuf,
                       const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                       void *recvbuf, const int recvcounts[], const int rdispls[],
                       MPI_Datatype recvtype, MPI_Comm comm);

#endif
