/* How much of everything travels at a time: bytes of a piece, from whom to whom. */
#ifndef MPILAB_PIECES_H
#define MPILAB_PIECES_H

#include "routes.h"

/* What travels together: of each pair the bytes from `begin` on, as many as a piece has, to the
 * ranks from place `first` to before place `last` of the topology's order. */
struct task {
    int first, last;
    long long begin;
};

/* Tasks are numbered in the same way on all ranks; these are the ones that this rank has any part
 * in: as many from 0 on. */
long long task_count(const struct mpilab_plan *plan);
struct task task_of(const struct mpilab_plan *plan, long long number);

/* Some places of the topology's order, or some mates: from `first` to before `last`. */
struct span {
    int first, last;
};
struct span task_places(const struct task *task, int first, int last); /* those among these */
struct span task_node(const struct mpilab_plan *plan, const struct task *task, int node);
struct span task_mates(const struct mpilab_plan *plan, const struct task *task);
int is_destination(const struct mpilab_plan *plan, const struct task *task); /* is this rank one? */

/* The bytes of a pair that travel now, if it has so many in all. */
long long bytes_of_pair(const struct mpilab_plan *plan, const struct task *task, long long bytes);

/* The bytes that travel now from a mate, of which `row` is the one in mpilab_plan.out, to places
 * none of which is a mate's; ... to all remote ranks. */
long long bytes_to_places(const struct mpilab_plan *plan, const struct task *task,
                          const long long *row, struct span places);
long long bytes_up(const struct mpilab_plan *plan, const struct task *task, const long long *row);
/* ... from all mates whose data this rank carries, to a node. */
long long bytes_out(const struct mpilab_plan *plan, const struct task *task, int node);
/* ... from some of the sources that this rank hands out for, to all mates; from all, to one. */
long long bytes_in(const struct mpilab_plan *plan, const struct task *task, int first, int last);
long long bytes_down(const struct mpilab_plan *plan, const struct task *task, int mate);
/* ... to this rank, from those sources that a mate hands out for. */
long long bytes_handed(const struct mpilab_plan *plan, const struct task *task, int mate);

#endif
