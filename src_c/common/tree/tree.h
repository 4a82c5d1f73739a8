/* Trees over the ranks of a communicator, and what travels along them.
 *
 * A tree is described by *virtual* ranks: v = (rank - root) mod P, so the root is always 0. The
 * children of a rank are listed in the order in which a broadcast begins to serve them.
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

/* Each function builds the part of the tree that this rank sees. It returns MPI_SUCCESS, or
 * MPI_ERR_ARG for a fan-out below 1, a radix below 2, or more children than fit: the same on all
 * ranks, so that none waits for one that has given up. */

/* `fanout` chains of (almost) equal length, whose first ranks are the root's children. */
int mpilab_chain(int fanout, int root, MPI_Comm comm, struct mpilab_tree *tree);

/* Virtual rank v has the children fanout*v + 1 ... fanout*v + fanout. */
int mpilab_kary_tree(int fanout, int root, MPI_Comm comm, struct mpilab_tree *tree);

/* The parent of v is v without its lowest nonzero digit in base `radix`. In a full tree, the child
 * with the most ranks below it comes first. */
int mpilab_knomial_tree(int radix, int root, MPI_Comm comm, struct mpilab_tree *tree);

/* A binary tree in rank order, rooted at `root`: all ranks under the first of two children are
 * lower than the rank itself, all under the second are higher. An only child is higher, except
 * under a root that is the last rank. */
int mpilab_in_order_tree(int root, MPI_Comm comm, struct mpilab_tree *tree);

/* How a message of `count` elements is cut: `pieces` pieces of `elements` elements; the last may be
 * shorter. segment_bytes 0 means one piece; an empty message is one empty piece. */
struct mpilab_segments {
    int elements, pieces;
};
struct mpilab_segments mpilab_cut(int count, MPI_Datatype datatype, long segment_bytes);
int mpilab_piece(const struct mpilab_segments *cut, int index, int count);

/* Both sides of a message must cut it alike: as in Open MPI, algorithms that cut messages require
 * the same count and datatype on all ranks, although MPI requires only the same signature. */

/* Send `buffer` down the tree, piece by piece: a rank forwards a piece to all its children at once,
 * while the next piece is on its way. */
int mpilab_bcast_along(const struct mpilab_tree *tree, void *buffer, int count,
                       MPI_Datatype datatype, long segment_bytes, MPI_Comm comm);

/* Reduce up the tree into the root's `recvbuf`, piece by piece: a rank receives the next piece
 * while it sends one up. With children c1 ... cn, the result is c1 op ... op own op cn, where each
 * c stands for that child's subtree. With MPI_IN_PLACE as `sendbuf` at the root, its own data is in
 * `recvbuf`, and comes last: c1 op ... op cn op own. */
int mpilab_reduce_along(const struct mpilab_tree *tree, const void *sendbuf, void *recvbuf,
                        int count, MPI_Datatype datatype, MPI_Op op, long segment_bytes,
                        MPI_Comm comm);

/* The same with several pieces in transit at once, for trees whose links differ in speed: a rank
 * posts its receives this many pieces ahead, and sends this many pieces before it waits for the
 * first of them to complete. So a slow link delays a fast one only when it is that far behind. A
 * tree of depth D takes D + (pieces - 1) / MPILAB_AHEAD rounds. */
enum { MPILAB_AHEAD = 4 };

/* `cut` may be that of a message with one more element, if several messages must be cut alike. */
int mpilab_stream_down(const struct mpilab_tree *tree, void *buffer, int count,
                       MPI_Datatype datatype, const struct mpilab_segments *cut, MPI_Comm comm);

/* For commutative operations: a rank's own data and its children's are combined in any order, but
 * always the same one. */
int mpilab_stream_up(const struct mpilab_tree *tree, const void *sendbuf, void *recvbuf, int count,
                     MPI_Datatype datatype, MPI_Op op, const struct mpilab_segments *cut,
                     MPI_Comm comm);

#endif
