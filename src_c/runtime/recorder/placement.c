/* Where this process runs, or pretends to run: its node and its group.
 *
 * Pretended places serve to test and grade on one machine what a kernel does on a cluster: the same
 * algorithm sends the same messages there, only faster.
 */
#include "mpilab.h"
#include "recorder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mpilab_place place;
static int is_known, is_pretended;

static void set_name(char name[static MPILAB_NAME_BYTES], const char *text, size_t length)
{
    if (length >= MPILAB_NAME_BYTES)
        length = MPILAB_NAME_BYTES - 1;
    memcpy(name, text, length);
    memset(name + length, 0, MPILAB_NAME_BYTES - length);
}

/* The switches above this node, as in "s0.s3.node7", which srun gives to every rank. mpirun passes
 * the address of its own host to all hosts, so it is ignored under mpirun, even on that host, which
 * would become a separate group. */
static int ask_slurm(void)
{
    const char *address = getenv("SLURM_TOPOLOGY_ADDR");
    if (getenv("OMPI_COMM_WORLD_RANK") != NULL) /* mpirun's */
        return 0;
    const size_t node = strlen(place.node), length = address == NULL ? 0 : strlen(address);
    if (length <= node || address[length - node - 1] != '.' ||
        strcmp(address + length - node, place.node) != 0)
        return 0;
    set_name(place.group, address, length - node - 1);
    return 1;
}

static void ask_list(void)
{
    const char *entry = getenv("MPILAB_GROUPS");
    const size_t length = strlen(place.node);
    while (entry != NULL && *entry != '\0') {
        const size_t whole = strcspn(entry, ",");
        if (whole > length && strncmp(entry, place.node, length) == 0 && entry[length] == '=') {
            set_name(place.group, entry + length + 1, whole - length - 1);
            return;
        }
        entry += whole + (entry[whole] == ',');
    }
}

static void find_out(void)
{
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    PMPI_Get_processor_name(host, &length);
    memset(&place, 0, sizeof place);
    set_name(place.node, host, (size_t)length);
    if (!ask_slurm())
        ask_list();
    is_known = 1;
}

const struct mpilab_place *mpilab_place(void)
{
    if (!is_known)
        find_out();
    return &place;
}

void mpilab_pretend_place(const struct mpilab_place *pretended)
{
    is_known = is_pretended = pretended != NULL;
    if (pretended != NULL)
        place = *pretended;
}

int place_is_pretended(void)
{
    return is_pretended;
}

/* The number of a node is the first rank on it. Nodes of two groups may have the same name. */
static int split(MPI_Comm comm, int has_part, int order, int rank, struct mpilab_place *places,
                 MPI_Comm *born)
{
    const int bytes = (int)sizeof place;
    places[rank] = place;
    const int err =
        PMPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, places, bytes, MPI_CHAR, comm);
    if (err != MPI_SUCCESS)
        return err;
    int first = 0;
    while (memcmp(&places[first], &place, sizeof place) != 0)
        first++;
    return PMPI_Comm_split(comm, has_part ? first : MPI_UNDEFINED, order, born);
}

int place_split_by_node(MPI_Comm comm, int has_part, int order, MPI_Comm *born)
{
    int size = 0, rank = 0;
    int err = PMPI_Comm_size(comm, &size);
    if (err == MPI_SUCCESS)
        err = PMPI_Comm_rank(comm, &rank);
    if (err != MPI_SUCCESS)
        return err;
    struct mpilab_place *places = malloc((size_t)size * sizeof *places);
    if (places == NULL)
        return MPI_ERR_NO_MEM;
    err = split(comm, has_part, order, rank, places, born);
    free(places);
    return err;
}

int MPI_Get_processor_name(char *name, int *length)
{
    if (!is_pretended)
        return PMPI_Get_processor_name(name, length);
    *length = snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", place.node);
    return MPI_SUCCESS;
}
