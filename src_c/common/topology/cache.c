/* Topologies are cached as an attribute, which is freed together with its communicator. */
#include "cache.h"
#include <stdlib.h>

static int key = MPI_KEYVAL_INVALID;

static void discard(struct topology_cache *cache)
{
    if (cache->has_leaders && cache->leaders != MPI_COMM_NULL)
        MPI_Comm_free(&cache->leaders);
    levels_free(&cache->levels);
    topology_free(&cache->topology);
    free(cache);
}

static int forget(MPI_Comm comm, int comm_key, void *value, void *extra)
{
    (void)comm, (void)comm_key, (void)extra;
    discard(value);
    return MPI_SUCCESS;
}

int topology_cache_of(MPI_Comm comm, struct topology_cache **cache)
{
    int err = MPI_SUCCESS, found = 0;
    if (key == MPI_KEYVAL_INVALID)
        err = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_get_attr(comm, key, cache, &found);
    if (err != MPI_SUCCESS || found)
        return err;
    struct topology_cache *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return MPI_ERR_NO_MEM;
    fresh->levels.root = -1;
    err = topology_build(comm, &fresh->topology);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_set_attr(comm, key, fresh);
    if (err != MPI_SUCCESS) {
        discard(fresh);
        return err;
    }
    *cache = fresh;
    return MPI_SUCCESS;
}

int mpilab_topology_of(MPI_Comm comm, const struct mpilab_topology **topology)
{
    struct topology_cache *cache;
    const int err = topology_cache_of(comm, &cache);
    if (err == MPI_SUCCESS)
        *topology = &cache->topology;
    return err;
}
