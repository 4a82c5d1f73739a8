/* The levels for a root, as lists of ranks: the root's group, node and rank go to the front. */
#include "cache.h"
#include <stdlib.h>
#include <string.h>

void levels_free(struct mpilab_levels *levels)
{
    struct mpilab_members *const lists[] = {&levels->all,   &levels->groups,      &levels->nodes,
                                            &levels->group, &levels->group_nodes, &levels->node};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->rank);
    memset(levels, 0, sizeof *levels);
    levels->root = -1;
}

static int take_memory(struct mpilab_levels *levels, int size)
{
    struct mpilab_members *const lists[] = {&levels->all,   &levels->groups,      &levels->nodes,
                                            &levels->group, &levels->group_nodes, &levels->node};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        *lists[i] = (struct mpilab_members){0, -1, malloc((size_t)size * sizeof(int))};
        if (lists[i]->rank == NULL)
            return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

static void append(struct mpilab_members *members, int rank, int self)
{
    if (rank == self)
        members->self = members->size;
    members->rank[members->size++] = rank;
}

/* Element i of a sequence in which element `first` moves to the front and the others keep their
 * order. */
static int fronted(int i, int first)
{
    if (i == 0)
        return first;
    return i <= first ? i - 1 : i;
}

static void add_node(const struct mpilab_topology *topology, int node, int leader, int self,
                     struct mpilab_levels *levels)
{
    const int begin = topology->node_begin[node], end = topology->node_begin[node + 1];
    const int is_own_node = node == topology->node[self];
    const int is_own_group = topology->group[topology->order[begin]] == topology->group[self];
    append(&levels->nodes, leader, self);
    if (is_own_group)
        append(&levels->group_nodes, leader, self);
    const int first = topology->position[leader] - begin;
    for (int i = 0; i < end - begin; i++) {
        const int rank = topology->order[begin + fronted(i, first)];
        append(&levels->all, rank, self);
        if (is_own_group)
            append(&levels->group, rank, self);
        if (is_own_node)
            append(&levels->node, rank, self);
    }
}

static void add_group(const struct mpilab_topology *topology, int group, int root, int self,
                      struct mpilab_levels *levels)
{
    const int begin = topology->first_node[group], end = topology->first_node[group + 1];
    const int has_root = topology->group[root] == group;
    const int first = has_root ? topology->node[root] - begin : 0;
    for (int i = 0; i < end - begin; i++) {
        const int node = begin + fronted(i, first);
        const int leader = has_root && i == 0 ? root : topology->order[topology->node_begin[node]];
        if (i == 0)
            append(&levels->groups, leader, self);
        add_node(topology, node, leader, self, levels);
    }
}

int mpilab_levels_of(MPI_Comm comm, int root, const struct mpilab_levels **levels)
{
    struct topology_cache *cache;
    int err = topology_cache_of(comm, &cache);
    if (err != MPI_SUCCESS)
        return err;
    const struct mpilab_topology *const topology = &cache->topology;
    if (root < 0 || root >= topology->size)
        return MPI_ERR_ROOT;
    if (cache->levels.root != root) {
        int self;
        MPI_Comm_rank(comm, &self);
        levels_free(&cache->levels);
        err = take_memory(&cache->levels, topology->size);
        if (err != MPI_SUCCESS) {
            levels_free(&cache->levels);
            return err;
        }
        for (int i = 0; i < topology->groups; i++)
            add_group(topology, fronted(i, topology->group[root]), root, self, &cache->levels);
        cache->levels.root = root;
    }
    *levels = &cache->levels;
    return MPI_SUCCESS;
}
