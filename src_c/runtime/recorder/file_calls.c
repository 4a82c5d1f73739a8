/* Calls on files that move no data. A file that the kernel opens and does not close is a leak. */
#include "recorder.h"

MPI_File mpilab_lent_file = MPI_FILE_NULL;

static struct mpilab_record *begin(enum mpilab_operation operation, int flags, MPI_File file,
                                   int64_t bytes, uintptr_t site)
{
    struct mpilab_record *record = record_begin(operation, flags, MPI_COMM_NULL, site);
    if (recorder_is_on()) {
        record->bytes = bytes;
        file_describe(record, file);
    }
    return record;
}

int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file)
{
    struct mpilab_record *record =
        record_begin(MPILAB_File_open, MPILAB_COLLECTIVE, comm, CALL_SITE);
    if (recorder_is_on()) {
        record->count = mode;
        record->sequence = communicator_sequence(comm);
        record->members = communicator_size(comm);
    }
    const int err = PMPI_File_open(comm, name, mode, info, file);
    if (err == MPI_SUCCESS && recorder_is_on())
        file_born(*file, record);
    return record_end_blocking(record, err);
}

int MPI_File_close(MPI_File *file)
{
    const MPI_File handle = file == NULL ? MPI_FILE_NULL : *file;
    struct mpilab_record *record =
        begin(MPILAB_File_close, MPILAB_COLLECTIVE, handle, 0, CALL_SITE);
    const int err = PMPI_File_close(file);
    /* Also for a file that is closed after the kernel has returned. */
    if (err == MPI_SUCCESS) {
        file_closed(handle);
        if (handle == mpilab_lent_file)
            mpilab_lent_file = MPI_FILE_NULL;
    }
    return record_end_blocking(record, err);
}

int MPI_File_delete(const char *name, MPI_Info info)
{
    struct mpilab_record *record = record_begin(MPILAB_File_delete, 0, MPI_COMM_NULL, CALL_SITE);
    return record_end_blocking(record, PMPI_File_delete(name, info));
}

int MPI_File_set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype,
                      MPI_Datatype filetype, const char *representation, MPI_Info info)
{
    struct mpilab_record *record =
        begin(MPILAB_File_set_view, MPILAB_COLLECTIVE, file, 0, CALL_SITE);
    if (recorder_is_on()) {
        record->offset = displacement;
        record->bytes = typed_bytes(1, filetype);
    }
    const int err = PMPI_File_set_view(file, displacement, etype, filetype, representation, info);
    if (err == MPI_SUCCESS && recorder_is_on())
        record->offset = file_view_changed(file, displacement, etype, filetype);
    return record_end_blocking(record, err);
}

int MPI_File_seek(MPI_File file, MPI_Offset offset, int from)
{
    struct mpilab_record *record = begin(MPILAB_File_seek, 0, file, 0, CALL_SITE);
    const int err = PMPI_File_seek(file, offset, from);
    if (err == MPI_SUCCESS && recorder_is_on())
        record->offset = file_byte_at_pointer(file);
    return record_end_blocking(record, err);
}

int MPI_File_set_size(MPI_File file, MPI_Offset size)
{
    struct mpilab_record *record =
        begin(MPILAB_File_set_size, MPILAB_COLLECTIVE, file, size, CALL_SITE);
    return record_end_blocking(record, PMPI_File_set_size(file, size));
}

int MPI_File_preallocate(MPI_File file, MPI_Offset size)
{
    struct mpilab_record *record =
        begin(MPILAB_File_preallocate, MPILAB_COLLECTIVE, file, size, CALL_SITE);
    return record_end_blocking(record, PMPI_File_preallocate(file, size));
}

int MPI_File_sync(MPI_File file)
{
    struct mpilab_record *record = begin(MPILAB_File_sync, MPILAB_COLLECTIVE, file, 0, CALL_SITE);
    return record_end_blocking(record, PMPI_File_sync(file));
}
