/* Derived datatypes: which call created each, to find those that are never freed. */
#include "recorder.h"
#include <stdlib.h>

static struct made {
    MPI_Datatype handle;
    int record;
} *table;
static int used, room;

/* Querying the size takes half as long as a record, and most messages are of one datatype. */
static MPI_Datatype sized = MPI_DATATYPE_NULL;
static int size_of_sized;

void datatypes_clear(void)
{
    free(table);
    table = NULL;
    used = room = 0;
    sized = MPI_DATATYPE_NULL;
}

int64_t typed_bytes(int count, MPI_Datatype datatype)
{
    if (datatype == MPI_DATATYPE_NULL)
        return 0;
    int size = size_of_sized;
    if (datatype != sized) {
        if (PMPI_Type_size(datatype, &size) != MPI_SUCCESS || size == MPI_UNDEFINED)
            return 0;
        sized = datatype;
        size_of_sized = size;
    }
    return (int64_t)count * size;
}

int64_t dense_bytes(int count, MPI_Datatype datatype)
{
    int integers, addresses, datatypes, combiner = MPI_COMBINER_DUP, size = 0;
    MPI_Aint lower_bound, extent = 0;
    /* What a derived type covers can be in several pieces, and is unknown in SMPI. */
    PMPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner);
    PMPI_Type_size(datatype, &size);
    PMPI_Type_get_extent(datatype, &lower_bound, &extent);
    return combiner == MPI_COMBINER_NAMED && extent == size ? (int64_t)count * size : 0;
}

static void add(MPI_Datatype handle, const struct mpilab_record *record)
{
    if (used == room) {
        const int larger = room == 0 ? 16 : 2 * room;
        struct made *moved = realloc(table, (size_t)larger * sizeof *table);
        if (moved == NULL)
            return;
        table = moved;
        room = larger;
    }
    table[used++] = (struct made){handle, record_index(record)};
}

static void drop(MPI_Datatype handle)
{
    int i = used - 1;
    while (i >= 0 && table[i].handle != handle)
        i--;
    if (i >= 0) {
        record_unmark_leak(table[i].record);
        table[i] = table[--used];
    }
}

void datatypes_mark_leaks(void)
{
    for (int i = 0; i < used; i++)
        record_mark_leak(table[i].record);
}

static struct mpilab_record *begin(enum mpilab_operation operation, int count, uintptr_t site)
{
    struct mpilab_record *record = record_begin(operation, 0, MPI_COMM_NULL, site);
    record->count = count;
    return record;
}

static int end_birth(struct mpilab_record *record, const MPI_Datatype *born, int err)
{
    if (err == MPI_SUCCESS && recorder_is_on())
        add(*born, record);
    return record_end_blocking(record, err);
}

#define UNWRAP(...) __VA_ARGS__
#define BIRTH(name, parameters, values, count)                                 \
    int MPI_##name(UNWRAP parameters, MPI_Datatype *born)                      \
    {                                                                          \
        struct mpilab_record *record = begin(MPILAB_##name, count, CALL_SITE); \
        return end_birth(record, born, PMPI_##name(UNWRAP values, born));      \
    }

BIRTH(Type_contiguous, (int count, MPI_Datatype of), (count, of), count)
BIRTH(Type_vector, (int count, int length, int stride, MPI_Datatype of),
      (count, length, stride, of), count)
BIRTH(Type_create_hvector, (int count, int length, MPI_Aint stride, MPI_Datatype of),
      (count, length, stride, of), count)
BIRTH(Type_indexed, (int count, const int lengths[], const int displs[], MPI_Datatype of),
      (count, lengths, displs, of), count)
BIRTH(Type_create_hindexed,
      (int count, const int lengths[], const MPI_Aint displs[], MPI_Datatype of),
      (count, lengths, displs, of), count)
BIRTH(Type_create_indexed_block, (int count, int length, const int displs[], MPI_Datatype of),
      (count, length, displs, of), count)
BIRTH(Type_create_hindexed_block, (int count, int length, const MPI_Aint displs[], MPI_Datatype of),
      (count, length, displs, of), count)
BIRTH(Type_create_struct,
      (int count, const int lengths[], const MPI_Aint displs[], const MPI_Datatype of[]),
      (count, lengths, displs, of), count)
BIRTH(Type_create_resized, (MPI_Datatype of, MPI_Aint lower_bound, MPI_Aint extent),
      (of, lower_bound, extent), 1)
BIRTH(Type_create_subarray,
      (int dimensions, const int sizes[], const int subsizes[], const int starts[], int order,
       MPI_Datatype of),
      (dimensions, sizes, subsizes, starts, order, of), dimensions)
BIRTH(Type_create_darray,
      (int size, int rank, int dimensions, const int sizes[], const int distributions[],
       const int arguments[], const int grid[], int order, MPI_Datatype of),
      (size, rank, dimensions, sizes, distributions, arguments, grid, order, of), dimensions)
BIRTH(Type_dup, (MPI_Datatype of), (of), 1)

int MPI_Type_commit(MPI_Datatype *datatype)
{
    struct mpilab_record *record = begin(MPILAB_Type_commit, 1, CALL_SITE);
    return record_end_blocking(record, PMPI_Type_commit(datatype));
}

int MPI_Type_free(MPI_Datatype *datatype)
{
    struct mpilab_record *record = begin(MPILAB_Type_free, 1, CALL_SITE);
    const MPI_Datatype handle = datatype == NULL ? MPI_DATATYPE_NULL : *datatype;
    const int err = PMPI_Type_free(datatype);
    if (err == MPI_SUCCESS)
        drop(handle);
    /* The next datatype may get the same handle. */
    sized = MPI_DATATYPE_NULL;
    return record_end_blocking(record, err);
}
