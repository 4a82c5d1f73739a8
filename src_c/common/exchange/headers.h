/* What the ranks of a node send each other before any data: headers with counts, on which a small
 * first piece is piggybacked.
 *
 *   to the own carrier      bytes to each remote rank, bytes from its sources, the first piece
 *   to any other local rank                            bytes from its sources
 *
 * Both sides know in advance how much room a header has for a piece, and from the counts whether it
 * carries one. Until headers are unpacked, that room counts as memory for other ranks' data; it
 * never exceeds what the area "up" may hold, and the other areas are allocated later.
 */
#ifndef MPILAB_HEADERS_H
#define MPILAB_HEADERS_H

#include "plan.h"

/* Collective: fill in the plan's counts, by messages within the node. */
int headers_exchange(struct mpilab_plan *plan);
/* Move the piggybacked pieces to where separate messages would be received, and free the
 * headers. */
void headers_unpack(struct mpilab_plan *plan, char *up);

/* Does the header carry what the local rank with this `row` of mpilab_plan.out sends up in this
 * task? */
int is_piggybacked(const struct mpilab_plan *plan, const struct task *task, const long long *row);

#endif
