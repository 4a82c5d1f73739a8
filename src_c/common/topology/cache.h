/* What topology/ caches on a communicator. */
#ifndef MPILAB_TOPOLOGY_CACHE_H
#define MPILAB_TOPOLOGY_CACHE_H

#include "topology.h"

struct topology_cache {
    struct mpilab_topology topology;
    struct mpilab_levels levels; /* for the latest root; the root is -1 if there is none */
    MPI_Comm leaders;            /* of groups; MPI_COMM_NULL until they are made */
    int has_leaders;
};

/* The cache of a communicator; collective at the first call. */
int topology_cache_of(MPI_Comm comm, struct topology_cache **cache);

/* --- places.c: fill in the topology from the places of all ranks, sorted; free it again */
int topology_build(MPI_Comm comm, struct mpilab_topology *topology);
void topology_free(struct mpilab_topology *topology);

/* --- levels.c */
void levels_free(struct mpilab_levels *levels);

#endif
