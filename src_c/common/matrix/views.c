/* A view of a file in which a rank sees its part of a matrix. */
#include "views.h"
#include "stretches.h"

enum { DIMENSIONS = 2 };

#if __has_include("cyclic_view.h")
#include "cyclic_view.h"
enum { HAS_CYCLIC = 1 };
#else /* in a handout, because lab 05 asks for it */
enum { HAS_CYCLIC = 0 };
static int mpilab_cyclic_type(const struct mpilab_matrix *matrix, int rank, MPI_Datatype *type)
{
    (void)matrix, (void)rank, (void)type;
    return MPI_ERR_TYPE;
}
#endif

/* A part that is one block of the matrix. */
static int block_type(const struct mpilab_matrix *matrix, struct mpilab_part part,
                      MPI_Datatype *type)
{
    const int sizes[DIMENSIONS] = {matrix->rows, matrix->columns};
    const int subsizes[DIMENSIONS] = {part.rows, part.columns};
    const int starts[DIMENSIONS] = {part.grid_row * matrix->block_rows,
                                    part.grid_column * matrix->block_columns};
    return MPI_Type_create_subarray(DIMENSIONS, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE,
                                    type);
}

/* Does every rank's part consist of one block at most? */
static int is_plain(const struct mpilab_matrix *matrix)
{
    return matrix->rows <= (MPI_Offset)matrix->block_rows * matrix->grid_rows &&
           matrix->columns <= (MPI_Offset)matrix->block_columns * matrix->grid_columns;
}

/* The position of a rank's part in the file. */
static int part_type(const struct mpilab_matrix *matrix, int rank, MPI_Datatype *type)
{
    const struct mpilab_part part = part_of(matrix, rank);
    int err;
    if (part.rows == 0 || part.columns == 0)
        err = MPI_Type_dup(MPI_DOUBLE, type); /* nothing is read: MPI has no empty subarrays */
    else if (part.rows <= matrix->block_rows && part.columns <= matrix->block_columns)
        err = block_type(matrix, part, type);
    else
        err = mpilab_cyclic_type(matrix, rank, type);
    return err == MPI_SUCCESS ? MPI_Type_commit(type) : err;
}

int mpilab_view_part(MPI_File file, const struct mpilab_matrix *matrix, MPI_Comm comm,
                     MPI_Info hints)
{
    if (!mpilab_parts_fit(matrix))
        return MPI_ERR_COUNT;
    if (!HAS_CYCLIC && !is_plain(matrix)) /* on all ranks, also on those with one block */
        return MPI_ERR_TYPE;
    int rank;
    MPI_Datatype type;
    MPI_Comm_rank(comm, &rank);
    int err = part_type(matrix, rank, &type);
    if (err == MPI_SUCCESS) {
        err = MPI_File_set_view(file, matrix->header_bytes, MPI_DOUBLE, type, "native", hints);
        MPI_Type_free(&type);
    }
    return err;
}

int mpilab_default_view(MPI_File file)
{
    return MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

int mpilab_holds_part(MPI_File file, const struct mpilab_matrix *matrix, int rank)
{
    MPI_Offset bytes;
    const struct mpilab_stretch span = mpilab_span(matrix, rank);
    const int err = MPI_File_get_size(file, &bytes);
    if (err != MPI_SUCCESS)
        return err;
    const int is_empty = span.begin == span.end;
    return is_empty || mpilab_offset(matrix, span.end) <= bytes ? MPI_SUCCESS : MPI_ERR_IO;
}
