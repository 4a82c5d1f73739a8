/* The inter-node traffic of recursive doubling, for any remapping. */
#include "../tree/blocks.h"
#include "remap.h"

/* How many boundaries separate two processes: none, a node's, or a node's and a group's. */
static int borders(const struct mpilab_topology *topology, int one, int other)
{
    return (topology->node[one] != topology->node[other]) +
           (mpilab_group_of(topology, one) != mpilab_group_of(topology, other));
}

long long remap_crossing(const struct mpilab_topology *topology, const int *process)
{
    const int size = topology->size;
    const int core = mpilab_power_of_two(size);
    const int folded = size - core;
    long long blocks = 0;
    /* Process v sends its block to the process that behaves as v. */
    for (int v = 0; v < size; v++)
        blocks += borders(topology, v, process[v]);
    /* Processes beyond the core send one block, and get all blocks back. */
    for (int v = core; v < size; v++)
        blocks += (1 + size) * (long long)borders(topology, process[v], process[v - core]);
    for (int distance = 1; distance < core; distance *= 2)
        for (int v = 0; v < core; v++) {
            const int first = v / distance * distance;
            const long long held = distance + remap_folded_onto(first, distance, folded);
            blocks += held * borders(topology, process[v], process[v ^ distance]);
        }
    return blocks;
}
