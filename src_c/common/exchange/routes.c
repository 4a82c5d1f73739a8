/* A whole alltoallv: data within a node goes directly, while the rest follows its route. */
#include "routes.h"
#include "headers.h"
#include "travel.h"

int mpilab_leader_there(const struct mpilab_topology *topology, int carrier, int node)
{
    (void)carrier;
    return topology->order[topology->node_begin[node]];
}

int mpilab_leader_of(const struct mpilab_topology *topology, int rank)
{
    return mpilab_leader_there(topology, rank, topology->node[rank]);
}

static int between_nodes(struct mpilab_plan *plan)
{
    int err = plan_take_memory(plan);
    if (err == MPI_SUCCESS)
        err = headers_exchange(plan);
    if (err == MPI_SUCCESS)
        err = mpilab_travel(plan);
    plan_free(plan);
    return err;
}

int mpilab_exchange_by(const struct mpilab_route *route, const void *sendbuf,
                       const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                       void *recvbuf, const int recvcounts[], const int rdispls[],
                       MPI_Datatype recvtype, MPI_Comm comm)
{
    const struct mpilab_topology *topology;
    struct mpilab_exchange exchange;
    struct mpilab_direct direct = {NULL, 0, 0};
    struct mpilab_plan plan;
    int err = mpilab_begin_exchange(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                    rdispls, recvtype, comm, &exchange);
    if (err == MPI_SUCCESS)
        err = mpilab_topology_of(comm, &topology);
    /* Detect a budget that is too small before sending anything. */
    if (err == MPI_SUCCESS && topology->nodes > 1)
        err = plan_begin(topology, route, &exchange, &plan);
    if (err == MPI_SUCCESS) {
        const int node = topology->node[exchange.rank], begin = topology->node_begin[node];
        err = mpilab_begin_direct(&exchange, topology->order + begin,
                                  topology->node_begin[node + 1] - begin, &direct);
    }
    if (err == MPI_SUCCESS && topology->nodes > 1)
        err = between_nodes(&plan);
    err = mpilab_end_direct(&exchange, &direct, err);
    mpilab_end_exchange(&exchange);
    return err;
}
