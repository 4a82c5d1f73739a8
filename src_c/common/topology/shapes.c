/* Trees of levels: a broadcast goes down them, and the mirrored reduction goes up. */
#include "topology.h"

enum { BINOMIAL = 2 };

/* Binomial trees over `count` levels, stacked: each tree but the first is rooted at a leaf of the
 * tree above. */
static int add_binomials(const struct mpilab_members *const *levels, int count,
                         struct mpilab_tree *tree)
{
    int err = MPI_SUCCESS;
    mpilab_begin_tree(tree);
    for (int i = 0; i < count && err == MPI_SUCCESS; i++)
        err = mpilab_add_knomial(tree, levels[i], BINOMIAL);
    return err;
}

int mpilab_node_tree(int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    const struct mpilab_levels *levels;
    const int err = mpilab_levels_of(comm, root, &levels);
    if (err != MPI_SUCCESS)
        return err;
    return add_binomials((const struct mpilab_members *[]){&levels->nodes, &levels->node}, 2, tree);
}

int mpilab_group_tree(int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    const struct mpilab_levels *levels;
    const int err = mpilab_levels_of(comm, root, &levels);
    if (err != MPI_SUCCESS)
        return err;
    return add_binomials((const struct mpilab_members *[]){&levels->groups, &levels->group}, 2,
                         tree);
}

int mpilab_node_group_tree(int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    const struct mpilab_levels *levels;
    const int err = mpilab_levels_of(comm, root, &levels);
    if (err != MPI_SUCCESS)
        return err;
    return add_binomials(
        (const struct mpilab_members *[]){&levels->groups, &levels->group_nodes, &levels->node}, 3,
        tree);
}

int mpilab_rank_order_tree(int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    const struct mpilab_levels *levels;
    const int err = mpilab_levels_of(comm, root, &levels);
    if (err != MPI_SUCCESS)
        return err;
    return add_binomials((const struct mpilab_members *[]){&levels->all}, 1, tree);
}

int mpilab_level_chains(int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    const struct mpilab_levels *levels;
    int err = mpilab_levels_of(comm, root, &levels);
    mpilab_begin_tree(tree);
    if (err == MPI_SUCCESS)
        err = mpilab_add_chain(tree, &levels->groups);
    if (err == MPI_SUCCESS)
        err = mpilab_add_chain(tree, &levels->group_nodes);
    if (err == MPI_SUCCESS)
        err = mpilab_add_knomial(tree, &levels->node, BINOMIAL);
    return err;
}
