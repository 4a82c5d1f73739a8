/* From the places of all ranks to their order by group, node and rank. */
#include "cache.h"
#include <stdlib.h>
#include <string.h>

/* A rank with the lowest ranks of its group and node: the key that ranks are sorted by. */
struct seat {
    int group, node, rank;
};

static int by_seat(const void *one, const void *other)
{
    const struct seat *a = one, *b = other;
    if (a->group != b->group)
        return a->group - b->group;
    return a->node != b->node ? a->node - b->node : a->rank - b->rank;
}

/* A rank with its place: sorting by name brings together the ranks of a group, and of a node. With
 * thousands of ranks, comparing all pairs of names would take too long. */
struct named {
    const struct mpilab_place *place;
    int rank;
};

static int by_name(const void *one, const void *other)
{
    const struct named *a = one, *b = other;
    /* Hosts of two groups may have the same name. */
    const int group = strcmp(a->place->group, b->place->group);
    const int node = group != 0 ? group : strcmp(a->place->node, b->place->node);
    return node != 0 ? node : a->rank - b->rank;
}

/* Give the ranks from `begin` up to but not including `end`, all of one group, the lowest ranks of
 * the group and of their nodes. */
static void seat_group(const struct named *named, int begin, int end, struct seat *seats)
{
    int group = named[begin].rank, node = named[begin].rank;
    for (int i = begin; i < end; i++)
        group = named[i].rank < group ? named[i].rank : group;
    for (int i = begin; i < end; i++) {
        if (i > begin && strcmp(named[i].place->node, named[i - 1].place->node) != 0)
            node = named[i].rank; /* the lowest of its node comes first */
        seats[named[i].rank] = (struct seat){group, node, named[i].rank};
    }
}

static int find_seats(const struct mpilab_place *places, int size, struct seat *seats)
{
    struct named *named = malloc((size_t)size * sizeof *named);
    if (named == NULL)
        return MPI_ERR_NO_MEM;
    for (int rank = 0; rank < size; rank++)
        named[rank] = (struct named){&places[rank], rank};
    qsort(named, (size_t)size, sizeof *named, by_name);
    for (int begin = 0, end; begin < size; begin = end) {
        end = begin + 1;
        while (end < size && strcmp(named[end].place->group, named[begin].place->group) == 0)
            end++;
        seat_group(named, begin, end, seats);
    }
    free(named);
    return MPI_SUCCESS;
}

static int take_memory(struct mpilab_topology *topology)
{
    const size_t size = (size_t)topology->size;
    int **const arrays[] = {&topology->node,      &topology->group,      &topology->order,
                            &topology->position,  &topology->node_begin, &topology->group_begin,
                            &topology->first_node};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = calloc(size + 1, sizeof(int));
        if (*arrays[i] == NULL)
            return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

void topology_free(struct mpilab_topology *topology)
{
    free(topology->node);
    free(topology->group);
    free(topology->order);
    free(topology->position);
    free(topology->node_begin);
    free(topology->group_begin);
    free(topology->first_node);
}

static void number(struct mpilab_topology *topology, const struct seat *seats)
{
    for (int i = 0; i < topology->size; i++) {
        const int is_first = i == 0;
        if (is_first || seats[i].group != seats[i - 1].group) {
            topology->group_begin[topology->groups] = i;
            topology->first_node[topology->groups++] = topology->nodes;
        }
        if (is_first || seats[i].node != seats[i - 1].node)
            topology->node_begin[topology->nodes++] = i;
        const int rank = seats[i].rank;
        topology->group[rank] = topology->groups - 1;
        topology->node[rank] = topology->nodes - 1;
        topology->order[i] = rank;
        topology->position[rank] = i;
    }
    topology->group_begin[topology->groups] = topology->size;
    topology->first_node[topology->groups] = topology->nodes;
    topology->node_begin[topology->nodes] = topology->size;
}

static int sort(const struct mpilab_place *places, struct mpilab_topology *topology)
{
    struct seat *seats = malloc((size_t)topology->size * sizeof *seats);
    int err = seats == NULL ? MPI_ERR_NO_MEM : take_memory(topology);
    if (err == MPI_SUCCESS)
        err = find_seats(places, topology->size, seats);
    if (err == MPI_SUCCESS) {
        qsort(seats, (size_t)topology->size, sizeof *seats, by_seat);
        number(topology, seats);
    }
    free(seats);
    return err;
}

int topology_build(MPI_Comm comm, struct mpilab_topology *topology)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &topology->size);
    struct mpilab_place *places = malloc((size_t)topology->size * sizeof *places);
    if (places == NULL)
        return MPI_ERR_NO_MEM;
    const int bytes = (int)sizeof *places;
    places[rank] = *mpilab_place();
    int err = MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, places, bytes, MPI_CHAR, comm);
    if (err == MPI_SUCCESS)
        err = sort(places, topology);
    free(places);
    return err;
}
