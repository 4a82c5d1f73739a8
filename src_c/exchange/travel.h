/* Data on their way between nodes: where they lie meanwhile.
 *
 * They change their order from one area of memory to the next:
 *
 *   up        by mate, destination        as the mates have sent it
 *   outgoing  by node, mate, destination  what goes to a node lies together
 *   incoming  by source, mate             as it came from other nodes
 *   downward  by mate, source             what goes to a mate lies together
 */
#ifndef MPILAB_TRAVEL_H
#define MPILAB_TRAVEL_H

#include "pieces.h"

enum area { UP, OUTGOING, INCOMING, DOWNWARD, AREAS };

struct travel {
    struct mpilab_plan *plan;
    char *area[AREAS];
    long long bytes[AREAS];
    char *own, *handed; /* this rank's own data, to its carrier and from those who hand out */
    char **at;          /* [mates] where to read or write next */
    MPI_Request *requests;
    char *is_receive; /* for each request, as all others are sends */
    int started;
};

/* Memory for every piece, and for as many requests as one step has. Free it also after an error. */
int travel_take_memory(struct travel *travel);
void travel_free_memory(struct travel *travel);

/* What this rank itself sends up now, as bytes. */
int travel_pack_up(const struct mpilab_plan *plan, const struct task *task, char *to);

#endif
