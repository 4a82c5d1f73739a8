/* Orders of all processes, dealt out like cards. */
#include "remap.h"
#include <stdlib.h>

void remap_regular(int size, int length, int *process)
{
    int dealt = 0;
    for (int turn = 0; turn < length; turn++)
        for (int first = 0; first < size; first += length)
            process[dealt++] = first + turn;
}

/* Take one element of each list, then another one of each, until none is left. List i is the
 * elements of `from` at begin[i] up to but not including begin[i + 1]. */
static void deal(const int *from, const int *begin, int lists, int *to)
{
    int dealt = 0;
    for (int turn = 0; dealt < begin[lists] - begin[0]; turn++)
        for (int i = 0; i < lists; i++)
            if (begin[i] + turn < begin[i + 1])
                to[dealt++] = from[begin[i] + turn];
}

int remap_dealt(const struct mpilab_topology *topology, int *process)
{
    int *const by_group = malloc((size_t)topology->size * sizeof *by_group);
    if (by_group == NULL)
        return MPI_ERR_NO_MEM;
    for (int group = 0; group < topology->groups; group++) {
        const int first = topology->first_node[group];
        deal(topology->order, &topology->node_begin[first], topology->first_node[group + 1] - first,
             by_group + topology->group_begin[group]);
    }
    deal(by_group, topology->group_begin, topology->groups, process);
    free(by_group);
    return MPI_SUCCESS;
}
