/* Which ranks share a node and a group: the levels of a communicator.
 *
 * A *node* is a host, a *group* the hosts of one switch or rack (mpilab_place). Ranks may be spread
 * over them in any order, and nodes and groups may differ in size.
 *
 *   groups                 |     left      |     right     |
 *   nodes                  |  n1   |  n2   |  n3   |  n4   |
 *   ranks, by node         | 0 4   | 1 5   | 2 6   | 3 7   |
 *   leaders for root 5     | 0       5 1     2       3     |   of nodes: 0, 5, 2, 3
 *                                                              of groups: 5, 2
 *
 * The topology is built at the first call for a communicator, from the places of its ranks; it is
 * cached on the communicator as an attribute, and freed with it.
 */
#ifndef MPILAB_TOPOLOGY_H
#define MPILAB_TOPOLOGY_H

#include "../tree/tree.h"
#include "mpilab.h"

/* The ranks of a communicator by place. Nodes are numbered along `order`, so the nodes of a group
 * are consecutive; groups are ordered by their lowest rank, and so are the nodes of a group. */
struct mpilab_topology {
    int size, nodes, groups;
    int *node;                     /* [size] of each rank */
    int *group;                    /* [nodes] of each node */
    int *order;                    /* [size] all ranks, by group, node and rank */
    int *position;                 /* [size] the position of a rank in `order` */
    int *node_begin, *group_begin; /* [nodes + 1], [groups + 1] where each begins in `order` */
    int *first_node;               /* [groups + 1] the first node of each group */
};

/* The topology of `comm`, cached on it. Collective at the first call for a communicator. */
int mpilab_topology_of(MPI_Comm comm, const struct mpilab_topology **topology);

static inline int mpilab_group_of(const struct mpilab_topology *topology, int rank)
{
    return topology->group[topology->node[rank]];
}

/* The size of the smallest of some parts, where part i begins at begin[i] and ends where part i+1
 * begins: for `node_begin`, the number of ranks on the smallest node. */
static inline int mpilab_smallest(const int *begin, int parts)
{
    int least = begin[1] - begin[0];
    for (int i = 1; i < parts; i++)
        if (begin[i + 1] - begin[i] < least)
            least = begin[i + 1] - begin[i];
    return least;
}

/* Some ranks of a communicator, the leader first; `self` is the index of this rank, or -1. */
struct mpilab_members {
    int size, self;
    int *rank;
};

/* The levels as this rank sees them, with `root` as the leader of its node and its group (and so of
 * all): no level needs to know where the root is. */
struct mpilab_levels {
    int root;
    struct mpilab_members all;         /* all ranks: by group and node, the root's first */
    struct mpilab_members groups;      /* the leaders of all groups */
    struct mpilab_members nodes;       /* the leaders of all nodes, by group */
    struct mpilab_members group;       /* the ranks of this rank's group, by node */
    struct mpilab_members group_nodes; /* the leaders of the nodes of its group */
    struct mpilab_members node;        /* the ranks of its node */
};

/* The levels for a root. They stay valid until this function is called with another root, or the
 * communicator is freed. Collective at the first call for a communicator. */
int mpilab_levels_of(MPI_Comm comm, int root, const struct mpilab_levels **levels);

/* Add to `tree` a k-nomial tree (`radix`), or a chain, over `members`, rooted at the first one: the
 * levels of a tree are added from the top down. No effect on ranks that are not members. Returns
 * MPI_ERR_ARG for a radix below 2, or for more children than fit. */
void mpilab_begin_tree(struct mpilab_tree *tree);
int mpilab_add_knomial(struct mpilab_tree *tree, const struct mpilab_members *members, int radix);
int mpilab_add_chain(struct mpilab_tree *tree, const struct mpilab_members *members);

/* Trees of levels, each for a broadcast and its mirrored reduction (shapes.c). All levels are
 * binomial trees, except the chains. */
int mpilab_node_tree(int root, MPI_Comm comm, struct mpilab_tree *tree);       /* nodes, node */
int mpilab_group_tree(int root, MPI_Comm comm, struct mpilab_tree *tree);      /* groups, group */
int mpilab_node_group_tree(int root, MPI_Comm comm, struct mpilab_tree *tree); /* all three */
int mpilab_rank_order_tree(int root, MPI_Comm comm, struct mpilab_tree *tree); /* one over all */

/* A chain over the groups, chains over the nodes of each group, and a binomial tree within each
 * node: no link between two groups or nodes carries a message twice in one direction. */
int mpilab_level_chains(int root, MPI_Comm comm, struct mpilab_tree *tree);

/* The communicator of the lowest ranks of all groups, in the order of groups; MPI_COMM_NULL on all
 * others. Made at the first call and freed with `comm`. Collective over `comm` at the first call:
 * all ranks must take part. */
int mpilab_group_leaders(MPI_Comm comm, MPI_Comm *leaders);

#endif
