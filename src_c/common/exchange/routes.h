/* An alltoallv that forwards data between nodes through other ranks.
 *
 *   node A                                   node B
 *   i --- up ---> carrier === across ===> partner --- down ---> j
 *
 * Blocks for ranks of the same node are sent directly. All others are cut into *pieces*, small
 * enough that no rank ever holds more than its budget of other ranks' data, however much is
 * exchanged. The size of a piece follows from the topology alone, so no rank has to ask: a few
 * large blocks are cut as finely as if all were large. While one piece goes across, the next one
 * goes up and the previous one down.
 *
 * A rank that forwards data must know how much there is for each rank. Ranks exchange counts only
 * within a node: each rank knows what it will receive, so no counts travel between nodes.
 *
 * exchange.h (buffers) <- plan.h (which rank forwards what) <- headers.h (counts) <- travel.h
 * (data) <- here
 */
#ifndef MPILAB_ROUTES_H
#define MPILAB_ROUTES_H

#include "plan.h"

/* The lowest rank of each node as carrier, and as partner. */
int mpilab_leader_of(const struct mpilab_topology *topology, int rank);
int mpilab_leader_there(const struct mpilab_topology *topology, int carrier, int node);

/* MPI_Alltoallv along this route. Returns MPI_ERR_ARG on all ranks, before any message is sent, if
 * the budget (mpilab_tuning.budget_bytes) has no room for one byte of each pair. */
int mpilab_exchange_by(const struct mpilab_route *route, const void *sendbuf,
                       const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                       void *recvbuf, const int recvcounts[], const int rdispls[],
                       MPI_Datatype recvtype, MPI_Comm comm);

#endif
