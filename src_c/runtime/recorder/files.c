/* Open files: numbers that agree on all ranks, and where in a file its view begins.
 *
 * Calls that all ranks of a file must make are matched and counted like collectives on a
 * communicator: an open file is treated as a separate communicator. Files that the kernel opens are
 * numbered separately from the one that it was given: all ranks open files in the same order, but
 * each may first use the given file at a different point. The numbers of several given files would
 * agree only if all ranks first used them in the same order; a kernel is given one.
 */
#include "recorder.h"
#include <stdlib.h>

enum { OPENED_BY_KERNEL = 1, GIVEN_TO_KERNEL = 2 };

struct opened_file {
    MPI_File handle;
    int number; /* on this rank, from 1 */
    uint32_t communicator;
    int members, collectives;
    int birth; /* record of the call that opened it, or MPILAB_NONE */
    int split; /* record of the split collective in progress, or MPILAB_NONE */
    /* The view. Without holes, offsets are computed here, otherwise MPI is asked. */
    MPI_Offset displacement;
    int etype_bytes, has_holes;
    struct opened_file *next;
};

static struct opened_file *first;
static struct opened_file *latest; /* the one that was looked up last, or NULL */
static int known_files;

void files_clear(void)
{
    while (first != NULL) {
        struct opened_file *rest = first->next;
        free(first);
        first = rest;
    }
    latest = NULL;
    known_files = 0;
}

void files_mark_leaks(void)
{
    for (const struct opened_file *entry = first; entry != NULL; entry = entry->next) {
        record_mark_leak(entry->birth);
        record_mark_leak(entry->split);
    }
}

static void set_view(struct opened_file *entry, MPI_Offset displacement, MPI_Datatype etype,
                     MPI_Datatype filetype)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Count bytes;
    entry->displacement = displacement;
    /* The data of a filetype is in file order (MPI 4.1, section 14.3), so data that fills its
     * bounds is contiguous; the true bounds reveal a hole in front of it, after which it may extend
     * beyond the type. */
    entry->has_holes =
        PMPI_Type_size(etype, &entry->etype_bytes) != MPI_SUCCESS ||
        PMPI_Type_size_x(filetype, &bytes) != MPI_SUCCESS ||
        PMPI_Type_get_extent(filetype, &lower, &extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent(filetype, &true_lower, &true_extent) != MPI_SUCCESS ||
        lower != 0 || extent != bytes || true_lower != 0 || true_extent != bytes;
}

static void free_if_derived(MPI_Datatype datatype)
{
    int integers, addresses, datatypes, combiner;
    const int err = PMPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner);
    if (err == MPI_SUCCESS && combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(&datatype);
}

static void ask_for_view(struct opened_file *entry)
{
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    if (PMPI_File_get_view(entry->handle, &displacement, &etype, &filetype, representation) !=
        MPI_SUCCESS) {
        entry->has_holes = 1;
        entry->displacement = MPILAB_NONE;
        return;
    }
    set_view(entry, displacement, etype, filetype);
    free_if_derived(etype);
    free_if_derived(filetype);
}

static struct opened_file *remember(MPI_File file, uint32_t kind)
{
    MPI_Group group;
    if (file == MPI_FILE_NULL || PMPI_File_get_group(file, &group) != MPI_SUCCESS)
        return NULL;
    struct opened_file *entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
        entry->handle = file;
        entry->number = ++known_files;
        entry->communicator = communicator_number_of_group(group, kind, &entry->members);
        entry->birth = entry->split = MPILAB_NONE;
        ask_for_view(entry);
        entry->next = first;
        first = entry;
    }
    PMPI_Group_free(&group);
    return entry;
}

static struct opened_file *lookup(MPI_File file)
{
    if (latest != NULL && latest->handle == file)
        return latest;
    struct opened_file *entry = first;
    while (entry != NULL && entry->handle != file)
        entry = entry->next;
    if (entry == NULL)
        entry = remember(file, GIVEN_TO_KERNEL);
    latest = entry;
    return entry;
}

void file_born(MPI_File file, struct mpilab_record *record)
{
    struct opened_file *entry = remember(file, OPENED_BY_KERNEL);
    if (entry != NULL) {
        entry->birth = record_index(record);
        record->file = entry->number;
    }
}

void file_closed(MPI_File file)
{
    for (struct opened_file **link = &first; *link != NULL; link = &(*link)->next) {
        struct opened_file *found = *link;
        if (found->handle == file) {
            *link = found->next;
            record_unmark_leak(found->birth);
            record_mark_leak(found->split); /* nothing can complete it now */
            if (latest == found)
                latest = NULL;
            free(found);
            break;
        }
    }
}

int64_t file_view_changed(MPI_File file, MPI_Offset displacement, MPI_Datatype etype,
                          MPI_Datatype filetype)
{
    struct opened_file *entry = lookup(file);
    if (entry == NULL)
        return displacement == MPI_DISPLACEMENT_CURRENT ? MPILAB_NONE : displacement;
    if (displacement == MPI_DISPLACEMENT_CURRENT)
        ask_for_view(entry);
    else
        set_view(entry, displacement, etype, filetype);
    return entry->displacement;
}

int64_t file_byte_at(MPI_File file, MPI_Offset offset)
{
    const struct opened_file *entry = lookup(file);
    if (entry == NULL)
        return MPILAB_NONE;
    if (offset < 0)
        return offset; /* in no file: the number that was given */
    MPI_Offset byte;
    if (!entry->has_holes)
        return __builtin_mul_overflow(offset, entry->etype_bytes, &byte) ||
                       __builtin_add_overflow(byte, entry->displacement, &byte)
                   ? MPILAB_NONE /* no file is as large */
                   : byte;
    return PMPI_File_get_byte_offset(file, offset, &byte) == MPI_SUCCESS ? byte : MPILAB_NONE;
}

int64_t file_byte_at_pointer(MPI_File file)
{
    MPI_Offset offset;
    if (lookup(file) == NULL || PMPI_File_get_position(file, &offset) != MPI_SUCCESS)
        return MPILAB_NONE;
    return file_byte_at(file, offset);
}

void file_describe(struct mpilab_record *record, MPI_File file)
{
    struct opened_file *entry = lookup(file);
    if (entry == NULL)
        return;
    record->file = entry->number;
    record->communicator = entry->communicator;
    if (record->flags & MPILAB_COLLECTIVE) {
        record->members = entry->members;
        record->sequence = entry->collectives++;
    }
}

void file_split_begun(MPI_File file, const struct mpilab_record *record)
{
    struct opened_file *entry = lookup(file);
    if (entry != NULL)
        entry->split = record_index(record);
}

struct mpilab_record *file_split_taken(MPI_File file)
{
    struct opened_file *entry = lookup(file);
    if (entry == NULL || entry->split == MPILAB_NONE)
        return NULL;
    struct mpilab_record *record = record_at(entry->split);
    entry->split = MPILAB_NONE;
    return record;
}
