/* Run-time rank remapping: processes behave as other ranks, without migration.
 *
 * The pattern of an algorithm determines which of the ranks 0 ... P-1 communicate most; the
 * placement determines which processes share a node. If the two don't match, a process *behaves as*
 * another rank of the pattern: it sends what that rank would send, to the processes that behave as
 * that rank's partners.
 *
 *   node          |     n1      |     n2      |     placed in order (SEQ), 2 nodes of 4 processes
 *   process       | 0  1  2  3  | 4  5  6  7  |
 *   behaves as    | 0  2  4  6  | 1  3  5  7  |     as if it were placed in turn (RR)
 *
 * Recursive doubling sends its longest messages between ranks that are P/2 apart. In this
 * placement, 0 and 4 are on different nodes; the processes that behave as 0 and 4 are both on n1.
 *
 * Source: Álvarez, Díaz, Rico, "Formal modeling and performance evaluation of a run-time rank
 * remapping technique in Broadcast, Allgather and Allreduce MPI collective operations", TAPEMS
 * 2017. The two formulas are theirs; the rules for arbitrary topologies are ours.
 */
#ifndef MPILAB_REMAP_H
#define MPILAB_REMAP_H

#include "../topology/topology.h"

/* How far apart the ranks are that communicate most in a pattern. */
enum mpilab_pattern {
    MPILAB_NEIGHBORS, /* consecutive ranks, which should share a node */
    MPILAB_DOUBLING,  /* recursive doubling: nodes should take turns */
};

/* Which process behaves as which rank: rank[v] is the process that behaves as v, and this process
 * behaves as `self`. mpilab_tuning.remap selects one of the formulas (MPI_ERR_ARG if the number of
 * processes is not a multiple of the number of nodes), or what suits the pattern on this topology:
 *
 *   neighbors   all processes by group, node and rank
 *   doubling    of three orders (as they are; nodes and groups taking turns; by group and node)
 *               the one in which recursive doubling sends the fewest bytes between nodes and
 *               between groups, including the cost of remapping; on a tie, the first
 *
 * The roles are computed once and cached on `comm`. Collective at the first call for a
 * communicator. */
int mpilab_roles_of(MPI_Comm comm, enum mpilab_pattern pattern,
                    const struct mpilab_members **roles);

/* For a pattern of neighbors with a root: `root` behaves as 0. A formula then counts from the root
 * and wraps around after the last rank; by topology, the root's group and node come first. The
 * roles stay valid until this function is called with another root or tuning. */
int mpilab_roles_from(MPI_Comm comm, int root, const struct mpilab_members **roles);

/* --- orders.c: processes cut into lists of `length`, which take turns: the first of each list, then
 * the second of each, and so on. `length` divides `size`.
 *
 *   size 8, length 4      0 4 1 5 2 6 3 7 */
void remap_regular(int size, int length, int *process);

/* All processes in dealt order: groups take turns, and so do the nodes within each group. */
int remap_dealt(const struct mpilab_topology *topology, int *process);

/* --- doubling.c: bytes of recursive doubling that cross to another node or group if process[v]
 * behaves as v, in blocks; those that cross to both count twice. */
long long remap_crossing(const struct mpilab_topology *topology, const int *process);

/* How many ranks fold onto `first`, ..., `first + length - 1`, if one rank folds onto each of the
 * ranks 0 ... `folded - 1`. */
static inline int remap_folded_onto(int first, int length, int folded)
{
    const int left = folded - first;
    return left < 0 ? 0 : left < length ? left : length;
}

#endif
