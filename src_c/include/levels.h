/* The levels of a cluster, as lists of ranks: for kernels that go group by group and node by node.
 *
 *   groups                 |     left      |     right     |
 *   nodes                  |  n1   |  n2   |  n3   |  n4   |
 *   ranks                  | 0 4   | 1 5   | 2 6   | 3 7   |
 *
 *   for root 5             leaders of the groups    5 2
 *                          of the nodes, in left    5 0      in right   2 3
 *                          the ranks of n2          5 1      of n1      0 4
 *
 * The result is cached on the communicator: the first call for a communicator is collective and
 * creates communicators; later calls only look it up.
 */
#ifndef MPILAB_LEVELS_H
#define MPILAB_LEVELS_H

#include "mpilab.h"
#include "splitting.h"
#include <stdlib.h>

enum { GROUPS, NODES, RANKS, LEVELS };

/* Some ranks of a communicator: the leader first, then those after it in order, wrapping around;
 * `self` is this rank's index in the list, or -1 if it is not in it. */
struct members {
    int size, self;
    int *rank;
};

/* The lists that form this rank's levels. The root leads its group and its node:
 *
 * level[GROUPS]   the leaders of all groups
 * level[NODES]    the leaders of the nodes of this rank's group
 * level[RANKS]    the ranks of this rank's node
 */
struct levels {
    struct members level[LEVELS];
    int size, root;
    int *order;        /* [size] all ranks by group, node and rank */
    int *group, *node; /* [size] of the rank at each place of `order`: ascending from 0 */
    int *at;           /* [size] the place of each rank in `order` */
};

static inline void levels_free(struct levels *levels)
{
    for (int i = 0; i < LEVELS; i++)
        free(levels->level[i].rank);
    free(levels->order);
    free(levels);
}

static inline int levels_forget(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    levels_free(value);
    return MPI_SUCCESS;
}

/* A duplicate of a communicator inherits nothing. */
static inline int levels_not_copied(MPI_Comm comm, int key, void *extra, void *value, void *copy,
                                    int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

/* Number the parts that begin at some ranks of `comm`: number[r] is how many ranks up to r have
 * `begins` set, minus one. A split by `begins` tells all ranks which ranks have set it. */
static inline int levels_number(MPI_Comm comm, int begins, int number[])
{
    MPI_Comm alike;
    int size, count;
    MPI_Comm_size(comm, &size);
    int err = MPI_Comm_split(comm, begins, 0, &alike);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_size(alike, &count);
    int *const there = malloc((size_t)count * sizeof(int));
    err = there == NULL ? MPI_ERR_NO_MEM : ranks_in(alike, count, comm, there);
    for (int rank = 0, next = 0, found = 0; rank < size && err == MPI_SUCCESS; rank++) {
        const int is_alike = next < count && there[next] == rank;
        next += is_alike;
        found += is_alike ? begins : !begins;
        number[rank] = found - 1;
    }
    free(there);
    MPI_Comm_free(&alike);
    return err;
}

/* Fill in order, group, node and at. */
static inline int levels_build(MPI_Comm comm, struct levels *levels)
{
    MPI_Comm group, node = MPI_COMM_NULL, ordered = MPI_COMM_NULL;
    int rank, of_group = 0, of_node = 0;
    const int size = levels->size;
    MPI_Comm_rank(comm, &rank);
    int err = split_by_name(comm, mpilab_place()->group, rank, &group);
    if (err != MPI_SUCCESS)
        return err;
    err = MPI_Comm_split_type(group, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    if (err == MPI_SUCCESS)
        err = ranks_in(group, 1, comm, &of_group);
    if (err == MPI_SUCCESS)
        err = ranks_in(node, 1, comm, &of_node);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_split(comm, 0, of_group * size + of_node, &ordered);
    if (err == MPI_SUCCESS)
        err = ranks_in(ordered, size, comm, levels->order);
    if (err == MPI_SUCCESS)
        err = levels_number(ordered, rank == of_group, levels->group);
    if (err == MPI_SUCCESS)
        err = levels_number(ordered, rank == of_node, levels->node);
    for (int place = 0; place < size && err == MPI_SUCCESS; place++)
        levels->at[levels->order[place]] = place;
    if (ordered != MPI_COMM_NULL)
        MPI_Comm_free(&ordered);
    if (node != MPI_COMM_NULL)
        MPI_Comm_free(&node);
    MPI_Comm_free(&group);
    return err;
}

/* Make the list of one level: the first rank of each part, but the root for the part that contains
 * it. A part is a group, a node or a rank (`part`, by place); only parts of the same whole as this
 * rank count (`whole`, by place; NULL: all). */
static inline void levels_list(const struct levels *levels, int self, const int *whole,
                               const int *part, struct members *members)
{
    const int root = levels->at[levels->root], own = levels->at[self];
    int first = 0;
    members->size = 0;
    members->self = -1;
    for (int place = 0; place < levels->size; place++) {
        if (whole != NULL && whole[place] != whole[own])
            continue;
        if (place > 0 && part != NULL && part[place] == part[place - 1])
            continue;
        const int has_root = part == NULL ? place == root : part[place] == part[root];
        if (has_root)
            first = members->size;
        members->rank[members->size++] = has_root ? levels->root : levels->order[place];
    }
    /* Rotate, so that the part with the root comes first. */
    int *const around = members->rank + members->size;
    for (int i = 0; i < members->size; i++) {
        around[i] = members->rank[(first + i) % members->size];
        if (around[i] == self)
            members->self = i;
    }
    for (int i = 0; i < members->size; i++)
        members->rank[i] = around[i];
}

/* The levels of `comm` for a root. They stay valid until this function is called with another root,
 * or the communicator is freed. */
static inline int levels_of(MPI_Comm comm, int root, const struct levels **found)
{
    static int key = MPI_KEYVAL_INVALID;
    struct levels *levels = NULL;
    int rank, is_there = 0, err = MPI_SUCCESS;
    if (key == MPI_KEYVAL_INVALID)
        err = MPI_Comm_create_keyval(levels_not_copied, levels_forget, &key, NULL);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_get_attr(comm, key, &levels, &is_there);
    if (err != MPI_SUCCESS)
        return err;
    if (!is_there) {
        levels = calloc(1, sizeof *levels);
        if (levels == NULL)
            return MPI_ERR_NO_MEM;
        levels->root = -1;
        MPI_Comm_size(comm, &levels->size);
        const size_t bytes = (size_t)levels->size * sizeof(int);
        levels->order = malloc(4 * bytes);
        int is_short = levels->order == NULL;
        for (int i = 0; i < LEVELS; i++)
            is_short |= (levels->level[i].rank = malloc(2 * bytes)) == NULL;
        if (!is_short) {
            levels->group = levels->order + levels->size;
            levels->node = levels->group + levels->size;
            levels->at = levels->node + levels->size;
        }
        err = is_short ? MPI_ERR_NO_MEM : levels_build(comm, levels);
        if (err == MPI_SUCCESS)
            err = MPI_Comm_set_attr(comm, key, levels);
        if (err != MPI_SUCCESS) {
            levels_free(levels);
            return err;
        }
    }
    if (levels->root != root) {
        MPI_Comm_rank(comm, &rank);
        levels->root = root;
        levels_list(levels, rank, NULL, levels->group, &levels->level[GROUPS]);
        levels_list(levels, rank, levels->group, levels->node, &levels->level[NODES]);
        levels_list(levels, rank, levels->node, NULL, &levels->level[RANKS]);
    }
    *found = levels;
    return MPI_SUCCESS;
}

#endif
