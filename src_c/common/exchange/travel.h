/* Data in transit between nodes. Its order changes from one area of memory to the next:
 *
 *   up        by local rank, destination        as the local ranks sent it
 *   outgoing  by node, local rank, destination  data for one node is contiguous
 *   incoming  by source, local rank             as it came from other nodes
 *   downward  by local rank, source             data for one local rank is contiguous
 */
#ifndef MPILAB_TRAVEL_H
#define MPILAB_TRAVEL_H

#include "plan.h"

/* Execute the plan, and wait until all headers have been sent. */
int mpilab_travel(struct mpilab_plan *plan);

#endif
