/* What the ranks of a node write to each other before anything travels: letters of counts, in which
 * a small first piece rides along.
 *
 *   to the own carrier   bytes to each remote rank, bytes from its sources, the piece that rides
 *   to any other mate                               bytes from its sources
 *
 * Both sides know beforehand how much room for a piece a letter has, and from the counts whether one
 * rides. Until the letters are opened, that room is memory for data of others; there is no more of
 * it than may be of the area "up", and the other areas are taken later.
 */
#ifndef MPILAB_LETTERS_H
#define MPILAB_LETTERS_H

#include "pieces.h"

/* A first piece rides where this is all that its rank has for other nodes. With as many bytes of
 * counts, Open MPI sends such a letter at once: before a message of more than 4096 within a node, it
 * asks whether the receiver is there. It is a multiple of what a count takes. */
enum { MOST_RIDING = 2048 };

/* Fill in the plan's counts, from letters within the node: collective. */
int letters_exchange(struct mpilab_plan *plan);
/* Put the pieces that came along where messages of their own would be received. It also burns. */
void letters_open(struct mpilab_plan *plan, char *up);
/* Give their memory back; there may be none. */
void letters_burn(struct mpilab_plan *plan);

/* Does what travels up now, of a mate with this `row` of mpilab_plan.out, ride in its letter? */
int rides(const struct mpilab_plan *plan, const struct task *task, const long long *row);

#endif
