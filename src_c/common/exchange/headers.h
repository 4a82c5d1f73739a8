/* What the ranks of a node send each other before anything travels: headers with counts, on which a
 * small first piece is piggybacked.
 *
 *   to the own carrier      bytes to each remote rank, bytes from its sources, the first piece
 *   to any other local rank                            bytes from its sources
 *
 * Both sides know beforehand how much room for a piece a header has, and from the counts whether it
 * has one. Until headers are unpacked, that room is memory for data of others; there is no more of
 * it than may be of the area "up", and the other areas are taken later.
 */
#ifndef MPILAB_HEADERS_H
#define MPILAB_HEADERS_H

#include "plan.h"

/* Fill in the plan's counts, by messages within the node: collective. */
int headers_exchange(struct mpilab_plan *plan);
/* Put the pieces that came along where messages of their own would be received, and free headers. */
void headers_unpack(struct mpilab_plan *plan, char *up);

/* Is what travels up now, of a local rank with this `row` of mpilab_plan.out, in its header? */
int is_piggybacked(const struct mpilab_plan *plan, const struct task *task, const long long *row);

#endif
