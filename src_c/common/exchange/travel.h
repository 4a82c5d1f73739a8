/* Data on their way between nodes. They change their order from one area of memory to the next:
 *
 *   up        by local rank, destination        as the local ranks have sent it
 *   outgoing  by node, local rank, destination  what goes to a node lies together
 *   incoming  by source, local rank             as it came from other nodes
 *   downward  by local rank, source             what goes to a local rank lies together
 */
#ifndef MPILAB_TRAVEL_H
#define MPILAB_TRAVEL_H

#include "plan.h"

/* Do what the plan is for. It also waits until all headers have been sent. */
int mpilab_travel(struct mpilab_plan *plan);

#endif
