/* From the places of all ranks to their order by group, node and rank.
 *
 * Names are long: only rank 0 gathers them. It broadcasts two numbers for each rank, so
 * every other rank receives only 8 bytes for each of P. */
#include "cache.h"
#include <stdlib.h>
#include <string.h>

/* The lowest ranks of a rank's group and node. */
struct seat {
    int group, node;
};
enum { NO_MEMORY = -1 }; /* as the group of rank 0: it could not sort the names */

/* What ranks are sorted by. */
struct key {
    struct seat seat;
    int rank;
};

static int by_key(const void *one, const void *other)
{
    const struct key *a = one, *b = other;
    if (a->seat.group != b->seat.group)
        return a->seat.group - b->seat.group;
    return a->seat.node != b->seat.node ? a->seat.node - b->seat.node : a->rank - b->rank;
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
        seats[named[i].rank] = (struct seat){group, node};
    }
}

/* At rank 0, which has the places of all ranks. */
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
    const struct {
        int **array;
        int length;
    } needed[] = {{&topology->node, topology->size},
                  {&topology->group, topology->nodes},
                  {&topology->order, topology->size},
                  {&topology->position, topology->size},
                  {&topology->node_begin, topology->nodes + 1},
                  {&topology->first_node, topology->groups + 1},
                  {&topology->group_begin, topology->groups + 1}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        *needed[i].array = malloc((size_t)needed[i].length * sizeof(int));
        if (*needed[i].array == NULL)
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

/* Whether a new group, or node, begins at position i of the keys. */
static int begins_group(const struct key *keys, int i)
{
    return i == 0 || keys[i].seat.group != keys[i - 1].seat.group;
}

static int begins_node(const struct key *keys, int i)
{
    return i == 0 || keys[i].seat.node != keys[i - 1].seat.node;
}

static int number(struct mpilab_topology *topology, const struct key *keys)
{
    for (int i = 0; i < topology->size; i++) {
        topology->groups += begins_group(keys, i);
        topology->nodes += begins_node(keys, i);
    }
    const int err = take_memory(topology);
    if (err != MPI_SUCCESS)
        return err;
    int groups = 0, nodes = 0;
    for (int i = 0; i < topology->size; i++) {
        if (begins_group(keys, i)) {
            topology->group_begin[groups] = i;
            topology->first_node[groups++] = nodes;
        }
        if (begins_node(keys, i)) {
            topology->group[nodes] = groups - 1;
            topology->node_begin[nodes++] = i;
        }
        const int rank = keys[i].rank;
        topology->node[rank] = nodes - 1;
        topology->order[i] = rank;
        topology->position[rank] = i;
    }
    topology->group_begin[groups] = topology->size;
    topology->first_node[groups] = nodes;
    topology->node_begin[nodes] = topology->size;
    return MPI_SUCCESS;
}

static int sort(const struct seat *seats, struct mpilab_topology *topology)
{
    struct key *keys = malloc((size_t)topology->size * sizeof *keys);
    if (keys == NULL)
        return MPI_ERR_NO_MEM;
    for (int rank = 0; rank < topology->size; rank++)
        keys[rank] = (struct key){seats[rank], rank};
    qsort(keys, (size_t)topology->size, sizeof *keys, by_key);
    const int err = number(topology, keys);
    free(keys);
    return err;
}

/* The seats of all ranks, on all ranks. */
static int learn_seats(MPI_Comm comm, int size, struct seat *seats)
{
    int rank;
    struct mpilab_place *places = NULL;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
        places = malloc((size_t)size * sizeof *places);
        if (places == NULL)
            return MPI_ERR_NO_MEM;
    }
    const int bytes = (int)sizeof *places;
    int err = MPI_Gather(mpilab_place(), bytes, MPI_CHAR, places, bytes, MPI_CHAR, 0, comm);
    if (rank == 0 && err == MPI_SUCCESS && find_seats(places, size, seats) != MPI_SUCCESS)
        seats[0].group = NO_MEMORY;
    free(places);
    if (err == MPI_SUCCESS)
        err = MPI_Bcast(seats, 2 * size, MPI_INT, 0, comm);
    return err == MPI_SUCCESS && seats[0].group == NO_MEMORY ? MPI_ERR_NO_MEM : err;
}

int topology_build(MPI_Comm comm, struct mpilab_topology *topology)
{
    MPI_Comm_size(comm, &topology->size);
    struct seat *seats = malloc((size_t)topology->size * sizeof *seats);
    int err = seats == NULL ? MPI_ERR_NO_MEM : learn_seats(comm, topology->size, seats);
    if (err == MPI_SUCCESS)
        err = sort(seats, topology);
    free(seats);
    return err;
}
