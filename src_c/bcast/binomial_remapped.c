/* Binomial broadcast, remapped: large subtrees are on separate nodes.
 *
 * Processes behave as other ranks of the plain algorithm (common/remap/remap.h), so that those of a
 * node are consecutive. The root keeps its role, so no rank needs another's data first: remapping
 * costs nothing.
 *
 *   node          |     n1      |     n2      |     placed in turn (RR), 2 nodes of 4 processes,
 *   process       | 0  2  4  6  | 1  3  5  7  |     root 0
 *   behaves as    | 0  1  2  3  | 4  5  6  7  |
 *
 *   round 1                      round 2                      round 3         one segment;
 *   0 -> 1   0 -> 4   0 -> 2     1 -> 5   1 -> 3   4 -> 6     5 -> 7          0 -> 1 alone is
 *                                                                             between nodes
 *
 * Tunables: remap (default: by group and node, those of the root first), segment_bytes
 *           (S = ⌈m / segment⌉ segments; default one)
 * Rounds:   floor_log2(P) + S - 1 if P > 1 else 0
 * Messages: (P - 1) * S
 * Bytes:    (P - 1) * m
 * Cost: as the plain algorithm; with Q processes on each of M nodes, Q a power of two, every node
 * gets the message once, (M-1) m bytes between nodes from any root. For other Q, subtrees and nodes
 * do not match, and bcast/node_group.c is better.
 * Source: Álvarez, Díaz, Rico (2017), "Formal modeling and performance evaluation of a run-time
 * rank remapping technique ..."; the tree as in Thakur, Rabenseifner, Gropp (2005), section 4.3.
 */
#include "../common/remap/remap.h"

MPILAB_BCAST(binomial_remapped)
{
    const struct mpilab_members *roles;
    struct mpilab_tree tree;
    int err = mpilab_roles_from(comm, root, &roles);
    mpilab_begin_tree(&tree);
    if (err == MPI_SUCCESS)
        err = mpilab_add_knomial(&tree, roles, 2);
    if (err == MPI_SUCCESS)
        err = mpilab_bcast_along(&tree, buffer, count, datatype, mpilab_tuning.segment_bytes, comm);
    return err;
}
