/* Tree barrier.
 *
 * Reports go up a binomial tree: a rank sends its own when those of all its children have arrived.
 * When rank 0 has them all, the release goes down the same tree.
 *
 *   round 1            round 2    round 3    round 4                P = 4
 *   1 -> 0   3 -> 2    2 -> 0     0 -> 2     0 -> 1   2 -> 3
 *
 * Rounds:   floor_log2(P) + ceil_log2(P)
 * Messages: 2 * (P - 1)
 * Bytes:    0
 * Cost: 2 ⌈log2 P⌉ α: as few messages as the linear barrier, but no rank handles more than log2(P)
 * of them.
 * Source: Open MPI 5, coll/base, "tree".
 */
#include "../common/tree/tree.h"

MPILAB_BARRIER(tree)
{
    struct mpilab_tree tree;
    int err = mpilab_knomial_tree(2, 0, comm, &tree);

    for (int i = tree.children - 1; i >= 0 && err == MPI_SUCCESS; i--)
        err = MPI_Recv(NULL, 0, MPI_BYTE, tree.child[i], TAG, comm, MPI_STATUS_IGNORE);

    /* The root has no parent, and messages to and from MPI_PROC_NULL complete at once without
     * effect. */
    if (err == MPI_SUCCESS)
        err = MPI_Send(NULL, 0, MPI_BYTE, tree.parent, TAG, comm);
    if (err == MPI_SUCCESS)
        err = MPI_Recv(NULL, 0, MPI_BYTE, tree.parent, TAG, comm, MPI_STATUS_IGNORE);

    for (int i = 0; i < tree.children && err == MPI_SUCCESS; i++)
        err = MPI_Send(NULL, 0, MPI_BYTE, tree.child[i], TAG, comm);
    return err;
}
