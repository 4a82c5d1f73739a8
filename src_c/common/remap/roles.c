/* Which process behaves as which rank: computed once, and cached on the communicator. */
#include "remap.h"
#include <stdlib.h>
#include <string.h>

enum list { SEQ_TO_RR, RR_TO_SEQ, NEIGHBORS, DOUBLING, FROM_ROOT, LISTS };

struct roles_cache {
    struct mpilab_members lists[LISTS]; /* allocated when first requested */
    int root, remap;                    /* for which FROM_ROOT was made */
};

static int key = MPI_KEYVAL_INVALID;

static int forget(MPI_Comm comm, int comm_key, void *value, void *extra)
{
    struct roles_cache *const cache = value;
    (void)comm, (void)comm_key, (void)extra;
    for (int i = 0; i < LISTS; i++)
        free(cache->lists[i].rank);
    free(cache);
    return MPI_SUCCESS;
}

static int cache_of(MPI_Comm comm, struct roles_cache **cache)
{
    int err = MPI_SUCCESS, found = 0;
    if (key == MPI_KEYVAL_INVALID)
        err = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_get_attr(comm, key, cache, &found);
    if (err != MPI_SUCCESS || found)
        return err;
    *cache = calloc(1, sizeof **cache);
    if (*cache == NULL)
        return MPI_ERR_NO_MEM;
    err = MPI_Comm_set_attr(comm, key, *cache);
    if (err != MPI_SUCCESS)
        free(*cache);
    return err;
}

/* The best of three orders for recursive doubling; on entry, `process` is the order of ranks. */
static int choose(const struct mpilab_topology *topology, int *process)
{
    const size_t bytes = (size_t)topology->size * sizeof(int);
    int *const dealt = malloc(bytes);
    const int err = dealt == NULL ? MPI_ERR_NO_MEM : remap_dealt(topology, dealt);
    if (err == MPI_SUCCESS) {
        const int *const others[] = {dealt, topology->order};
        long long best = remap_crossing(topology, process);
        for (int i = 0; i < 2; i++) {
            const long long crossing = remap_crossing(topology, others[i]);
            if (crossing < best) {
                best = crossing;
                memcpy(process, others[i], bytes);
            }
        }
    }
    free(dealt);
    return err;
}

static int fill(const struct mpilab_topology *topology, enum list list, int *process)
{
    for (int v = 0; v < topology->size; v++)
        process[v] = list == NEIGHBORS ? topology->order[v] : v;
    if (list == DOUBLING)
        return choose(topology, process);
    if (list == SEQ_TO_RR) /* the processes of a node are consecutive */
        remap_regular(topology->size, topology->size / topology->nodes, process);
    if (list == RR_TO_SEQ) /* as many consecutive processes as nodes are on one node each */
        remap_regular(topology->size, topology->nodes, process);
    return MPI_SUCCESS;
}

static void find_self(struct mpilab_members *roles, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    roles->self = 0;
    while (roles->rank[roles->self] != rank)
        roles->self++;
}

/* Allocate memory for the roles of all processes, once. */
static int take_memory(struct mpilab_members *roles, int size)
{
    if (roles->rank == NULL)
        roles->rank = malloc((size_t)size * sizeof *roles->rank);
    roles->size = size;
    return roles->rank == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int mpilab_roles_of(MPI_Comm comm, enum mpilab_pattern pattern, const struct mpilab_members **roles)
{
    const struct mpilab_topology *topology;
    struct roles_cache *cache;
    enum list list = pattern == MPILAB_DOUBLING ? DOUBLING : NEIGHBORS;
    int err = mpilab_topology_of(comm, &topology);
    if (err == MPI_SUCCESS)
        err = cache_of(comm, &cache);
    if (err != MPI_SUCCESS)
        return err;
    const int wanted = mpilab_tuning.remap;
    if (wanted != MPILAB_BY_TOPOLOGY) {
        const int is_known = wanted == MPILAB_SEQ_TO_RR || wanted == MPILAB_RR_TO_SEQ;
        if (!is_known || topology->size % topology->nodes != 0)
            return MPI_ERR_ARG;
        list = wanted == MPILAB_SEQ_TO_RR ? SEQ_TO_RR : RR_TO_SEQ;
    }
    struct mpilab_members *const found = &cache->lists[list];
    if (found->rank == NULL) {
        struct mpilab_members made = {0, -1, NULL};
        err = take_memory(&made, topology->size);
        if (err == MPI_SUCCESS)
            err = fill(topology, list, made.rank);
        if (err != MPI_SUCCESS) {
            free(made.rank);
            return err;
        }
        find_self(&made, comm);
        *found = made;
    }
    *roles = found;
    return MPI_SUCCESS;
}

int mpilab_roles_from(MPI_Comm comm, int root, const struct mpilab_members **roles)
{
    const struct mpilab_levels *levels;
    const struct mpilab_members *whole;
    struct roles_cache *cache;
    int err = mpilab_levels_of(comm, root, &levels);
    if (err == MPI_SUCCESS && mpilab_tuning.remap == MPILAB_BY_TOPOLOGY) {
        *roles = &levels->all;
        return MPI_SUCCESS;
    }
    if (err == MPI_SUCCESS)
        err = mpilab_roles_of(comm, MPILAB_NEIGHBORS, &whole);
    if (err == MPI_SUCCESS)
        err = cache_of(comm, &cache);
    if (err != MPI_SUCCESS)
        return err;
    struct mpilab_members *const found = &cache->lists[FROM_ROOT];
    const int is_made = found->rank != NULL;
    if (!is_made || cache->root != root || cache->remap != mpilab_tuning.remap) {
        err = take_memory(found, whole->size);
        if (err != MPI_SUCCESS)
            return err;
        int first = 0;
        while (whole->rank[first] != root)
            first++;
        for (int v = 0; v < whole->size; v++)
            found->rank[v] = whole->rank[(first + v) % whole->size];
        find_self(found, comm);
        cache->root = root;
        cache->remap = mpilab_tuning.remap;
    }
    *roles = found;
    return MPI_SUCCESS;
}
