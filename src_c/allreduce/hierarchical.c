/* Hierarchical allreduce: reduce to the leader of each group, recursive doubling among these, and
 * broadcast in the groups.
 *
 * In each group a binomial tree over its nodes, with one over the ranks of each node below it,
 * brings everything to the group's leader; the result goes down the same tree.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node
 *   round 1   1 -> 0    3 -> 2    5 -> 4    7 -> 6      within nodes
 *   round 2   2 -> 0              6 -> 4                between nodes
 *   round 3   0 -> 4    4 -> 0                          between groups
 *   round 4   0 -> 2    0 -> 1    4 -> 6    4 -> 5
 *   round 5   2 -> 3    6 -> 7
 *
 * Rounds:   2 * floor_log2(Q) + 2 * floor_log2(M // G) + doubling_rounds(G)
 * Messages: 2 * (P - G) + doubling_messages(G)
 * Bytes:    (2 * (P - G) + doubling_messages(G)) * m
 * Between nodes:  (2 * (M - G) + doubling_messages(G)) * m
 * Between groups: doubling_messages(G) * m
 *           where recursive doubling takes log2(G) rounds of G messages, if G is a power of two
 * Cost: log2(G) (α + mβ + mγ) between groups, with γ per byte reduced; up and down the tree within
 * them: for short messages (for long ones: allreduce/multilane.c). Operations that do not commute
 * are left to recursive doubling over all ranks in their order.
 * Source: Karonis et al. (2000), "Exploiting hierarchy in parallel computer networks"; Thakur,
 * Rabenseifner, Gropp (2005), section 4.5.
 */
#include "../common/topology/topology.h"

enum { ROOT = 0 };

MPILAB_ALLREDUCE(hierarchical)
{
    int commutes;
    MPI_Op_commutative(op, &commutes);
    if (!commutes)
        return allreduce_recursive_doubling(sendbuf, recvbuf, count, datatype, op, comm);

    const struct mpilab_levels *levels;
    struct mpilab_tree tree;
    MPI_Comm leaders;
    int err = mpilab_levels_of(comm, ROOT, &levels);
    if (err == MPI_SUCCESS)
        err = mpilab_group_leaders(comm, &leaders);
    mpilab_begin_tree(&tree);
    if (err == MPI_SUCCESS)
        err = mpilab_add_knomial(&tree, &levels->group_nodes, 2);
    if (err == MPI_SUCCESS)
        err = mpilab_add_knomial(&tree, &levels->node, 2);

    /* MPI_IN_PLACE is for the root of a reduction. */
    const int leads = tree.parent == MPI_PROC_NULL;
    const void *own = sendbuf == MPI_IN_PLACE && !leads ? recvbuf : sendbuf;
    if (err == MPI_SUCCESS)
        err = mpilab_reduce_along(&tree, own, recvbuf, count, datatype, op, 0, comm);
    if (err == MPI_SUCCESS && leads)
        err = allreduce_recursive_doubling(MPI_IN_PLACE, recvbuf, count, datatype, op, leaders);
    if (err == MPI_SUCCESS)
        err = mpilab_bcast_along(&tree, recvbuf, count, datatype, 0, comm);
    return err;
}
