/* Trees over the ranks of a communicator, and what travels along them.
 *
 * A tree is described by *virtual* ranks: v = (rank - root) mod P, so that the root is 0 whatever
 * rank it has. The children of a rank are listed in the order in which a broadcast begins to serve
 * them.
 *
 *   chain(K=1)      chain(K=2)       k-ary(K=2)        k-nomial(K=2) = binomial
 *   0-1-2-3-4       0-1-2            0                 0
 *                   |                |-- 1 -- 3, 4     |-- 4 -- 6 -- 7,  4 -- 5
 *                   3-4              |-- 2 -- 5, 6     |-- 2 -- 3
 *                                                      |-- 1
 */
#ifndef MPILAB_TREE_H
#define MPILAB_TREE_H

#include "mpilab.h"

enum { MPILAB_MOST_CHILDREN = 256 };

struct mpilab_tree {
    int parent;   /* rank, or MPI_PROC_NULL at the root */
    int children; /* how many */
    int child[MPILAB_MOST_CHILDREN];
};

/* All build the part of the tree that this rank sees. They return MPI_SUCCESS, or MPI_ERR_ARG
 * where the fan-out or radix does not make a tree (below 1, or 2; or more children than fit). What
 * they return is the same on all ranks, so that none waits for one that has given up. */

/* `fanout` chains of (almost) equal length, whose first ranks are the root's children. */
int mpilab_chain(int fanout, int root, MPI_Comm comm, struct mpilab_tree *tree);

/* Virtual rank v has the children fanout*v + 1 ... fanout*v + fanout. */
int mpilab_kary_tree(int fanout, int root, MPI_Comm comm, struct mpilab_tree *tree);

/* The parent of v is v without its lowest digit that is not 0, in base `radix`. The child with the
 * most ranks below it comes first, where the tree is full. */
int mpilab_knomial_tree(int radix, int root, MPI_Comm comm, struct mpilab_tree *tree);

/* A binary tree whose root is `root` and that stands in the order of ranks: all ranks under the
 * first of two children are lower than the rank itself, all under the other one are higher. An only
 * child is higher, but for that of a root that is the last rank. */
int mpilab_in_order_tree(int root, MPI_Comm comm, struct mpilab_tree *tree);

/* How a message of `count` elements is cut: `pieces` pieces of `elements` elements, the last one
 * maybe shorter. segment_bytes 0 means one piece; a message of nothing is one piece of nothing. */
struct mpilab_segments {
    int elements, pieces;
};
struct mpilab_segments mpilab_cut(int count, MPI_Datatype datatype, long segment_bytes);
int mpilab_piece(const struct mpilab_segments *cut, int index, int count);

/* Both sides of a message must cut it alike: as in Open MPI, all ranks have to give the same count
 * and datatype where an algorithm cuts, although MPI asks for the same signature only. */

/* Send `buffer` down the tree, piece by piece: a rank passes a piece on to all its children at once,
 * while the next one is on its way to it. */
int mpilab_bcast_along(const struct mpilab_tree *tree, void *buffer, int count,
                       MPI_Datatype datatype, long segment_bytes, MPI_Comm comm);

/* Reduce up the tree into the root's `recvbuf`, piece by piece: a rank takes the next piece in
 * while it hands one up. With children c1 ... cn the result is c1 op ... op own op cn, where each c
 * stands for all that is under that child. With MPI_IN_PLACE as `sendbuf` at the root, its own data
 * are in `recvbuf`, and come last: c1 op ... op cn op own. */
int mpilab_reduce_along(const struct mpilab_tree *tree, const void *sendbuf, void *recvbuf,
                        int count, MPI_Datatype datatype, MPI_Op op, long segment_bytes,
                        MPI_Comm comm);

/* The same with several pieces on their way at once, for trees whose links differ in speed: a rank
 * posts its receives so many pieces ahead, and lets so many pieces leave before it waits for the
 * first of them to be gone. So a slow link holds a quick one up only when it is that far behind.
 * A tree of depth D takes D + (pieces - 1) / MPILAB_AHEAD rounds. */
enum { MPILAB_AHEAD = 4 };

/* `cut` may be that of a message with one element more, where several have to be cut alike. */
int mpilab_stream_down(const struct mpilab_tree *tree, void *buffer, int count,
                       MPI_Datatype datatype, const struct mpilab_segments *cut, MPI_Comm comm);

/* For operations that commute: own data and those of the children come in any order, but always in
 * the same. */
int mpilab_stream_up(const struct mpilab_tree *tree, const void *sendbuf, void *recvbuf, int count,
                     MPI_Datatype datatype, MPI_Op op, const struct mpilab_segments *cut,
                     MPI_Comm comm);

#endif
