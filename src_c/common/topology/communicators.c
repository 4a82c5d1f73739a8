/* The communicator of the leaders of groups, for algorithms that run a collective among them. */
#include "cache.h"

int mpilab_group_leaders(MPI_Comm comm, MPI_Comm *leaders)
{
    struct topology_cache *cache;
    int err = topology_cache_of(comm, &cache);
    if (err == MPI_SUCCESS && !cache->has_leaders) {
        const struct mpilab_topology *const topology = &cache->topology;
        int rank;
        MPI_Comm_rank(comm, &rank);
        const int place = topology->position[rank];
        const int leads = place == topology->group_begin[mpilab_group_of(topology, rank)];
        err = MPI_Comm_split(comm, leads ? 0 : MPI_UNDEFINED, place, &cache->leaders);
        cache->has_leaders = err == MPI_SUCCESS;
    }
    if (err == MPI_SUCCESS)
        *leaders = cache->leaders;
    return err;
}
