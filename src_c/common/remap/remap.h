/* Run-time rank remapping: ranks behave as others, and nobody moves.
 *
 * The pattern of an algorithm says which of the ranks 0 ... P-1 talk most; the placement says which
 * processes share a node. Where the two don't fit, a process *behaves as* another rank of the
 * pattern: it sends what that one would send, to the processes that behave as the ranks which that
 * one would send to.
 *
 *   node          |     n1      |     n2      |     placed in order (SEQ), 2 nodes of 4 processes
 *   process       | 0  1  2  3  | 4  5  6  7  |
 *   behaves as    | 0  2  4  6  | 1  3  5  7  |     as if it were placed in turn (RR)
 *
 * Recursive doubling has its longest messages between ranks that are P/2 apart. As they are placed
 * here, 0 and 4 are on two nodes; the processes that behave as 0 and 4 are both on n1.
 *
 * Source: Álvarez, Díaz, Rico, "Formal modeling and performance evaluation of a run-time rank
 * remapping technique in Broadcast, Allgather and Allreduce MPI collective operations", TAPEMS
 * 2017. Theirs are the two formulas; what follows from a topology of any shape is ours.
 */
#ifndef MPILAB_REMAP_H
#define MPILAB_REMAP_H

#include "../topology/topology.h"

/* The rank that stands, in RR order, where `rank` stands in SEQ order, and the other way round, on
 * `nodes` nodes of `each` processes. The one undoes the other. */
int mpilab_seq_to_rr(int rank, int nodes, int each);
int mpilab_rr_to_seq(int rank, int nodes, int each);

/* How far apart the ranks of a pattern are that talk most. */
enum mpilab_pattern {
    MPILAB_NEIGHBORS, /* ranks that follow each other: those of a node should */
    MPILAB_DOUBLING,  /* recursive doubling: nodes should take turns */
};

/* Who behaves as whom: rank[v] is the process that behaves as v, and this one behaves as `self`. By
 * mpilab_tuning.remap that is one of the formulas (MPI_ERR_ARG if the processes are not a multiple
 * of the nodes), or what suits the pattern on this topology:
 *
 *   neighbors   all processes by group, node and rank
 *   doubling    of three orders (as they are; nodes and groups taking turns; by group and node)
 *               the one in which recursive doubling sends the fewest bytes between nodes and
 *               between groups, what remapping itself costs among them; the first of equals
 *
 * They are made once, and stay with `comm`. Collective at the first call for a communicator. */
int mpilab_roles_of(MPI_Comm comm, enum mpilab_pattern pattern,
                    const struct mpilab_members **roles);

/* For a pattern of neighbors with a root: `root` behaves as 0. A formula then counts on from the
 * root, and begins again after the last rank; by topology, the root's group and node come first.
 * They stay valid until this function is called with another root or tuning. */
int mpilab_roles_from(MPI_Comm comm, int root, const struct mpilab_members **roles);

/* --- orders.c: all processes, dealt out: groups take turns, and in each group its nodes do */
int remap_dealt(const struct mpilab_topology *topology, int *process);

/* --- doubling.c: bytes of recursive doubling that cross to another node or group if process[v]
 * behaves as v, in blocks; those that cross to both count twice. */
long long remap_crossing(const struct mpilab_topology *topology, const int *process);

/* How many of the ranks that fold onto `first`, ..., `first + length - 1` there are, where ranks 0
 * ... `folded - 1` have one folding onto them. */
static inline int remap_folded_onto(int first, int length, int folded)
{
    const int left = folded - first;
    return left < 0 ? 0 : left < length ? left : length;
}

#endif
