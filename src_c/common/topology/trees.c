/* Trees over the members of a level, one under the other. */
#include "topology.h"

void mpilab_begin_tree(struct mpilab_tree *tree)
{
    tree->parent = MPI_PROC_NULL;
    tree->children = 0;
}

/* A broadcast serves the children of an upper level first, because they have farther to go. */
static int add_child(struct mpilab_tree *tree, int rank)
{
    if (tree->children == MPILAB_MOST_CHILDREN)
        return MPI_ERR_ARG;
    tree->child[tree->children++] = rank;
    return MPI_SUCCESS;
}

int mpilab_add_knomial(struct mpilab_tree *tree, const struct mpilab_members *members, int radix)
{
    if (radix < 2)
        return MPI_ERR_ARG;
    const int self = members->self;
    if (self < 0)
        return MPI_SUCCESS;
    /* The lowest nonzero digit of `self` is at `power`; the root's is beyond all digits. */
    int power = 1;
    while (power < members->size && self / power % radix == 0)
        power *= radix;
    if (self != 0)
        tree->parent = members->rank[self - self / power % radix * power];
    int err = MPI_SUCCESS;
    for (power /= radix; power > 0; power /= radix)
        for (int digit = 1; digit < radix && err == MPI_SUCCESS; digit++)
            if (self + digit * power < members->size)
                err = add_child(tree, members->rank[self + digit * power]);
    return err;
}

int mpilab_add_chain(struct mpilab_tree *tree, const struct mpilab_members *members)
{
    const int self = members->self;
    if (self > 0)
        tree->parent = members->rank[self - 1];
    if (self >= 0 && self + 1 < members->size)
        return add_child(tree, members->rank[self + 1]);
    return MPI_SUCCESS;
}
