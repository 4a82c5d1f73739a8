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

static int take_memory(const struct mpilab_topology *topology, int self,
                       struct mpilab_levels *levels)
{
    const int node = topology->node[self], group = topology->group[node];
    const int *const node_begin = topology->node_begin, *const group_begin = topology->group_begin;
    const struct {
        struct mpilab_members *list;
        int length;
    } needed[] = {
        {&levels->all, topology->size},
        {&levels->groups, topology->groups},
        {&levels->nodes, topology->nodes},
        {&levels->group, group_begin[group + 1] - group_begin[group]},
        {&levels->group_nodes, topology->first_node[group + 1] - topology->first_node[group]},
        {&levels->node, node_begin[node + 1] - node_begin[node]},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        int *const ranks = malloc((size_t)needed[i].length * sizeof(int));
        *needed[i].list = (struct mpilab_members){0, -1, ranks};
        if (ranks == NULL)
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
    const int is_own_group =
        mpilab_group_of(topology, topology->order[begin]) == mpilab_group_of(topology, self);
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
    const int has_root = mpilab_group_of(topology, root) == group;
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
        err = take_memory(topology, self, &cache->levels);
        if (err != MPI_SUCCESS) {
            levels_free(&cache->levels);
            return err;
        }
        for (int i = 0; i < topology->groups; i++)
            add_group(topology, fronted(i, mpilab_group_of(topology, root)), root, self,
                      &cache->levels);
        cache->levels.root = root;
    }
    *levels = &cache->levels;
    return MPI_SUCCESS;
}
