/* Reads and writes of files. One call is one request, however many pieces a view makes of it. */
#include "recorder.h"

static struct mpilab_record *begin(enum mpilab_operation operation, int flags, MPI_File file,
                                   int count, MPI_Datatype datatype, uintptr_t site)
{
    struct mpilab_record *record = record_begin(operation, flags, MPI_COMM_NULL, site);
    if (recorder_is_on()) {
        record->count = count;
        record->bytes = typed_bytes(count, datatype);
        file_describe(record, file);
    }
    return record;
}

/* Where a transfer begins: at an explicit offset, at this rank's pointer, or at the shared one. The
 * wrappers call their arguments `file` and `offset`. */
#define AT_OFFSET  file_byte_at(file, offset)
#define AT_POINTER file_byte_at_pointer(file)
#define AT_SHARED  MPILAB_NONE

static int end(struct mpilab_record *record, const MPI_Status *status, int error)
{
    if (error == MPI_SUCCESS && recorder_is_on())
        record->got_bytes = status_bytes(status);
    return record_end_blocking(record, error);
}

#define READS  MPILAB_READS_FILE
#define WRITES MPILAB_WRITES_FILE
#define ALL    MPILAB_COLLECTIVE

#define UNWRAP(...) __VA_ARGS__
#define DATA        int count, MPI_Datatype datatype

/* BLOCKING(name, flags, parameters before the data, their values, where it begins) */
#define BLOCKING(name, flags, parameters, values, place)                                   \
    int MPI_##name(MPI_File file, UNWRAP parameters, DATA, MPI_Status *status)             \
    {                                                                                      \
        struct mpilab_record *record =                                                     \
            begin(MPILAB_##name, flags, file, count, datatype, CALL_SITE);                 \
        if (recorder_is_on())                                                              \
            record->offset = place;                                                        \
        MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;               \
        return end(record, used, PMPI_##name(file, UNWRAP values, count, datatype, used)); \
    }

#define NONBLOCKING(name, flags, parameters, values, place)                                       \
    int MPI_##name(MPI_File file, UNWRAP parameters, DATA, MPI_Request *request)                  \
    {                                                                                             \
        struct mpilab_record *record =                                                            \
            begin(MPILAB_##name, (flags) | MPILAB_NONBLOCKING, file, count, datatype, CALL_SITE); \
        if (recorder_is_on())                                                                     \
            record->offset = place;                                                               \
        return record_end_start(record, MPI_COMM_NULL, request,                                   \
                                PMPI_##name(file, UNWRAP values, count, datatype, request));      \
    }

/* The request of a split collective starts at its begin call, and is complete at its end call. */
static int leave_begin(struct mpilab_record *record, MPI_File file, int error)
{
    if (error == MPI_SUCCESS && recorder_is_on())
        file_split_begun(file, record);
    return record_end(record, error);
}

static int leave_end(struct mpilab_record *record, struct mpilab_record *request,
                     const MPI_Status *status, int error)
{
    record_end_blocking(record, error);
    if (request != NULL) {
        request->error = record->error;
        request->got_bytes = error == MPI_SUCCESS ? status_bytes(status) : 0;
        request->done_ns = record->done_ns;
    }
    return error;
}

static struct mpilab_record *enter_end(enum mpilab_operation operation, MPI_File file,
                                       struct mpilab_record **request, uintptr_t site)
{
    struct mpilab_record *record =
        begin(operation, MPILAB_COLLECTIVE, file, 0, MPI_DATATYPE_NULL, site);
    *request = recorder_is_on() ? file_split_taken(file) : NULL;
    if (*request != NULL)
        (*request)->waiter = record_index(record);
    return record;
}

#define SPLIT(name, flags, parameters, values, buffer_type, place)                                \
    int MPI_##name##_begin(MPI_File file, UNWRAP parameters, DATA)                                \
    {                                                                                             \
        struct mpilab_record *record = begin(MPILAB_##name##_begin, (flags) | MPILAB_NONBLOCKING, \
                                             file, count, datatype, CALL_SITE);                   \
        if (recorder_is_on())                                                                     \
            record->offset = place;                                                               \
        return leave_begin(record, file,                                                          \
                           PMPI_##name##_begin(file, UNWRAP values, count, datatype));            \
    }                                                                                             \
    int MPI_##name##_end(MPI_File file, buffer_type buffer, MPI_Status *status)                   \
    {                                                                                             \
        struct mpilab_record *request,                                                            \
            *record = enter_end(MPILAB_##name##_end, file, &request, CALL_SITE);                  \
        MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;                      \
        return leave_end(record, request, used, PMPI_##name##_end(file, buffer, used));           \
    }

#define INTO    (void *buffer)
#define FROM    (const void *buffer)
#define INTO_AT (MPI_Offset offset, void *buffer)
#define FROM_AT (MPI_Offset offset, const void *buffer)
#define HERE    (buffer)
#define AT      (offset, buffer)

BLOCKING(File_read, READS, INTO, HERE, AT_POINTER)
BLOCKING(File_read_at, READS, INTO_AT, AT, AT_OFFSET)
BLOCKING(File_read_all, READS | ALL, INTO, HERE, AT_POINTER)
BLOCKING(File_read_at_all, READS | ALL, INTO_AT, AT, AT_OFFSET)
BLOCKING(File_read_shared, READS, INTO, HERE, AT_SHARED)
BLOCKING(File_read_ordered, READS | ALL, INTO, HERE, AT_SHARED)

NONBLOCKING(File_iread, READS, INTO, HERE, AT_POINTER)
NONBLOCKING(File_iread_at, READS, INTO_AT, AT, AT_OFFSET)
NONBLOCKING(File_iread_all, READS | ALL, INTO, HERE, AT_POINTER)
NONBLOCKING(File_iread_at_all, READS | ALL, INTO_AT, AT, AT_OFFSET)
NONBLOCKING(File_iread_shared, READS, INTO, HERE, AT_SHARED)

BLOCKING(File_write, WRITES, FROM, HERE, AT_POINTER)
BLOCKING(File_write_at, WRITES, FROM_AT, AT, AT_OFFSET)
BLOCKING(File_write_all, WRITES | ALL, FROM, HERE, AT_POINTER)
BLOCKING(File_write_at_all, WRITES | ALL, FROM_AT, AT, AT_OFFSET)
BLOCKING(File_write_shared, WRITES, FROM, HERE, AT_SHARED)
BLOCKING(File_write_ordered, WRITES | ALL, FROM, HERE, AT_SHARED)

NONBLOCKING(File_iwrite, WRITES, FROM, HERE, AT_POINTER)
NONBLOCKING(File_iwrite_at, WRITES, FROM_AT, AT, AT_OFFSET)
NONBLOCKING(File_iwrite_all, WRITES | ALL, FROM, HERE, AT_POINTER)
NONBLOCKING(File_iwrite_at_all, WRITES | ALL, FROM_AT, AT, AT_OFFSET)
NONBLOCKING(File_iwrite_shared, WRITES, FROM, HERE, AT_SHARED)

SPLIT(File_read_all, READS | ALL, INTO, HERE, void *, AT_POINTER)
SPLIT(File_read_at_all, READS | ALL, INTO_AT, AT, void *, AT_OFFSET)
SPLIT(File_read_ordered, READS | ALL, INTO, HERE, void *, AT_SHARED)
SPLIT(File_write_all, WRITES | ALL, FROM, HERE, const void *, AT_POINTER)
SPLIT(File_write_at_all, WRITES | ALL, FROM_AT, AT, const void *, AT_OFFSET)
SPLIT(File_write_ordered, WRITES | ALL, FROM, HERE, const void *, AT_SHARED)
