/* Communicators: numbers that agree on all ranks, without a message of our own.
 *
 * A communicator's number is a hash of its members (as ranks of the base communicator) and of how
 * many communicators with the same members this rank has seen before. Members create communicators
 * in the same order, so they agree on the number. MPI_COMM_WORLD has its own number, so that it is
 * never mistaken for another communicator with the same members. An attribute with a delete
 * callback reports when a handle is freed, after which another communicator may get it.
 */
#include "recorder.h"
#include <stdlib.h>

struct members {
    MPI_Comm comm;
    uint32_t number;
    int size, collectives;
    int birth; /* record of the call that made it, or MPILAB_NONE */
    int *to_base;
    int requests, is_freed; /* pending requests need it even if the communicator is freed */
    struct members *next;
};

/* How many communicators with the same members there have been, including freed ones. */
struct family {
    uint32_t members, count;
    struct family *next;
};

static struct members *first;
static struct members *latest; /* the one that was looked up last, or NULL */
static struct family *families;
static int key = MPI_KEYVAL_INVALID;
static MPI_Group base_group = MPI_GROUP_NULL;

static void discard(struct members *entry)
{
    if (latest == entry)
        latest = NULL;
    entry->is_freed = 1;
    if (entry->requests > 0)
        return;
    free(entry->to_base);
    free(entry);
}

static int forget(MPI_Comm comm, int comm_key, void *value, void *extra)
{
    (void)comm_key, (void)extra;
    for (struct members **link = &first; *link != NULL; link = &(*link)->next) {
        struct members *found = *link;
        if (found == value && found->comm == comm) {
            *link = found->next;
            record_unmark_leak(found->birth);
            discard(found);
            break;
        }
    }
    return MPI_SUCCESS;
}

static uint32_t mix(uint32_t hash, uint32_t value)
{
    for (int byte = 0; byte < 4; byte++, value >>= 8)
        hash = (hash ^ (value & 0xff)) * 16777619u; /* FNV-1a */
    return hash;
}

static uint32_t next_of_family(uint32_t members)
{
    for (struct family *family = families; family != NULL; family = family->next)
        if (family->members == members)
            return family->count++;
    struct family *family = calloc(1, sizeof *family);
    if (family != NULL) {
        *family = (struct family){members, 1, families};
        families = family;
    }
    return 0;
}

/* Its `size` members as ranks of the base communicator. */
static int translate_group(MPI_Group group, int size, int to_base[])
{
    int *ranks = malloc(sizeof(int) * (size_t)size);
    for (int i = 0; ranks != NULL && i < size; i++)
        ranks[i] = i;
    const int err = ranks == NULL
                        ? MPI_ERR_NO_MEM
                        : PMPI_Group_translate_ranks(group, size, ranks, base_group, to_base);
    free(ranks);
    return err;
}

static int translate_all(MPI_Comm comm, struct members *entry)
{
    MPI_Group group;
    int err = PMPI_Comm_group(comm, &group);
    if (err != MPI_SUCCESS)
        return err;
    err = translate_group(group, entry->size, entry->to_base);
    PMPI_Group_free(&group);
    return err;
}

static uint32_t hash_of(int size, const int to_base[])
{
    uint32_t members = 2166136261u;
    for (int i = 0; i < size; i++)
        members = mix(members, (uint32_t)to_base[i]);
    return members;
}

static struct members *remember(MPI_Comm comm)
{
    struct members *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    entry->comm = comm;
    entry->birth = MPILAB_NONE;
    /* A freed handle is no longer a communicator. */
    if (PMPI_Comm_size(comm, &entry->size) == MPI_SUCCESS)
        entry->to_base = malloc(sizeof(int) * (size_t)entry->size);
    if (entry->to_base == NULL || translate_all(comm, entry) != MPI_SUCCESS) {
        discard(entry);
        return NULL;
    }
    if (comm == MPI_COMM_WORLD) {
        entry->number = MPILAB_WORLD;
    } else {
        const uint32_t members = hash_of(entry->size, entry->to_base);
        entry->number = mix(members, next_of_family(members));
    }
    entry->next = first;
    first = entry;
    PMPI_Comm_set_attr(comm, key, entry);
    return entry;
}

static struct members *lookup(MPI_Comm comm)
{
    if (latest != NULL && latest->comm == comm)
        return latest;
    if (comm == MPI_COMM_NULL || base_group == MPI_GROUP_NULL)
        return NULL;
    struct members *entry = first;
    while (entry != NULL && entry->comm != comm)
        entry = entry->next;
    if (entry == NULL)
        entry = remember(comm);
    latest = entry;
    return entry;
}

int communicators_open(MPI_Comm base)
{
    int err = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    if (err == MPI_SUCCESS)
        err = PMPI_Comm_group(base, &base_group);
    /* Number it here, before the kernel makes another communicator. */
    if (err == MPI_SUCCESS)
        communicator_number(base);
    return err;
}

void communicators_close(void)
{
    while (first != NULL) {
        struct members *entry = first;
        /* Deleting the attribute calls `forget`, which removes the entry from the list. */
        PMPI_Comm_delete_attr(entry->comm, key);
        if (first == entry) {
            first = entry->next;
            discard(entry);
        }
    }
    while (families != NULL) {
        struct family *rest = families->next;
        free(families);
        families = rest;
    }
    if (key != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&key);
    if (base_group != MPI_GROUP_NULL)
        PMPI_Group_free(&base_group);
}

uint32_t communicator_number_of_group(MPI_Group group, uint32_t kind, int *size)
{
    *size = 0;
    if (base_group == MPI_GROUP_NULL || PMPI_Group_size(group, size) != MPI_SUCCESS)
        return 0;
    uint32_t number = 0;
    int *to_base = malloc(sizeof(int) * (size_t)*size);
    if (to_base != NULL && translate_group(group, *size, to_base) == MPI_SUCCESS) {
        const uint32_t members = mix(hash_of(*size, to_base), kind);
        number = mix(members, next_of_family(members));
    }
    free(to_base);
    return number;
}

uint32_t communicator_number(MPI_Comm comm)
{
    const struct members *entry = lookup(comm);
    return entry == NULL ? 0 : entry->number;
}

int communicator_sequence(MPI_Comm comm)
{
    struct members *entry = lookup(comm);
    return entry == NULL ? 0 : entry->collectives++;
}

int communicator_size(MPI_Comm comm)
{
    const struct members *entry = lookup(comm);
    return entry == NULL ? 0 : entry->size;
}

int communicator_rank(MPI_Comm comm, int rank)
{
    return communicator_member(lookup(comm), rank);
}

struct members *communicator_hold(MPI_Comm comm)
{
    struct members *entry = lookup(comm);
    if (entry != NULL)
        entry->requests++;
    return entry;
}

void communicator_release(struct members *entry)
{
    if (entry != NULL && --entry->requests == 0 && entry->is_freed)
        discard(entry);
}

int communicator_member(const struct members *entry, int rank)
{
    if (rank == MPI_ANY_SOURCE)
        return MPILAB_ANY;
    if (entry == NULL || rank < 0 || rank >= entry->size)
        return MPILAB_NOBODY;
    const int translated = entry->to_base[rank];
    return translated == MPI_UNDEFINED ? MPILAB_NOBODY : translated;
}

void communicator_born(MPI_Comm comm, struct mpilab_record *record)
{
    struct members *entry = lookup(comm);
    if (entry == NULL)
        return;
    entry->birth = record_index(record);
    record->offset = entry->number;
}

void communicators_mark_leaks(void)
{
    for (const struct members *entry = first; entry != NULL; entry = entry->next)
        record_mark_leak(entry->birth);
}
