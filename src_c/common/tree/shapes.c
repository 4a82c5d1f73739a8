/* The shapes of trees. */
#include "tree.h"

struct place {
    int virtual_rank, size, root;
};

static struct place place_of(int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    tree->parent = MPI_PROC_NULL;
    tree->children = 0;
    return (struct place){(rank - root + size) % size, size, root};
}

static int real_rank(const struct place *place, int virtual_rank)
{
    return (virtual_rank + place->root) % place->size;
}

static void add_child(const struct place *place, int virtual_rank, struct mpilab_tree *tree)
{
    tree->child[tree->children++] = real_rank(place, virtual_rank);
}

/* First virtual rank of chain number `index`: the first (P-1) mod fanout chains are one longer. */
static int chain_begin(int index, int fanout, int size)
{
    const int length = (size - 1) / fanout, longer = (size - 1) % fanout;
    return 1 + index * length + (index < longer ? index : longer);
}

int mpilab_chain(int fanout, int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    const struct place place = place_of(root, comm, tree);
    const int chains = fanout < place.size - 1 ? fanout : place.size - 1;
    if (fanout < 1 || chains > MPILAB_MOST_CHILDREN)
        return MPI_ERR_ARG;
    for (int index = 0; index < chains; index++) {
        const int begin = chain_begin(index, chains, place.size);
        const int end = chain_begin(index + 1, chains, place.size);
        if (place.virtual_rank == 0) {
            add_child(&place, begin, tree);
        } else if (begin <= place.virtual_rank && place.virtual_rank < end) {
            const int above = place.virtual_rank == begin ? 0 : place.virtual_rank - 1;
            tree->parent = real_rank(&place, above);
            if (place.virtual_rank + 1 < end)
                add_child(&place, place.virtual_rank + 1, tree);
        }
    }
    return MPI_SUCCESS;
}

int mpilab_kary_tree(int fanout, int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    const struct place place = place_of(root, comm, tree);
    const int most = fanout < place.size - 1 ? fanout : place.size - 1;
    if (fanout < 1 || most > MPILAB_MOST_CHILDREN)
        return MPI_ERR_ARG;
    if (place.virtual_rank > 0)
        tree->parent = real_rank(&place, (place.virtual_rank - 1) / fanout);
    for (int i = 1; i <= most; i++) {
        const long long child = (long long)fanout * place.virtual_rank + i;
        if (child < place.size)
            add_child(&place, (int)child, tree);
    }
    return MPI_SUCCESS;
}

/* No rank has more children than the root of a k-nomial tree. */
static long long knomial_root_children(int radix, int size)
{
    long long children = 0;
    for (long long weight = 1; weight < size; weight *= radix) {
        const long long digits = (size - 1) / weight;
        children += digits < radix - 1 ? digits : radix - 1;
    }
    return children;
}

int mpilab_knomial_tree(int radix, int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    const struct place place = place_of(root, comm, tree);
    if (radix < 2 || knomial_root_children(radix, place.size) > MPILAB_MOST_CHILDREN)
        return MPI_ERR_ARG;
    /* The weight of the lowest nonzero digit of v; for the root, one beyond all ranks. */
    long long weight = 1;
    while (weight < place.size && place.virtual_rank / weight % radix == 0)
        weight *= radix;
    if (place.virtual_rank > 0)
        tree->parent = real_rank(
            &place, (int)(place.virtual_rank - place.virtual_rank / weight % radix * weight));
    for (weight /= radix; weight >= 1; weight /= radix)
        for (int digit = 1; digit < radix; digit++) {
            const long long child = place.virtual_rank + digit * weight;
            if (child < place.size)
                add_child(&place, (int)child, tree);
        }
    return MPI_SUCCESS;
}

/* The top of a tree over the ranks from `begin` up to but not including `end`: the middle, or the
 * lower of two middle ranks. */
static int middle(int begin, int end)
{
    return begin + (end - begin - 1) / 2;
}

int mpilab_in_order_tree(int root, MPI_Comm comm, struct mpilab_tree *tree)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const struct place as_they_are = {rank, size, 0};

    /* Go down from the root to this rank; [begin, end) are the ranks under `top`. */
    int begin = 0, end = size, top = root;
    tree->parent = MPI_PROC_NULL;
    tree->children = 0;
    while (top != rank) {
        tree->parent = top;
        if (rank < top)
            end = top;
        else
            begin = top + 1;
        top = middle(begin, end);
    }
    if (begin < top)
        add_child(&as_they_are, middle(begin, top), tree);
    if (top + 1 < end)
        add_child(&as_they_are, middle(top + 1, end), tree);
    return MPI_SUCCESS;
}
