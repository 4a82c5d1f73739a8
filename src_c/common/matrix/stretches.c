/* Stretches of the elements in a file. */
#include "stretches.h"
#include "mpilab.h"
#include <limits.h>
#include <string.h>

struct mpilab_stretch mpilab_span(const struct mpilab_matrix *matrix, int rank)
{
    const struct mpilab_part part = part_of(matrix, rank);
    if (part.rows == 0 || part.columns == 0)
        return (struct mpilab_stretch){0, 0};
    const int top = undealt(0, matrix->block_rows, matrix->grid_rows, part.grid_row);
    const int left = undealt(0, matrix->block_columns, matrix->grid_columns, part.grid_column);
    const int bottom = undealt(part.rows - 1, matrix->block_rows, matrix->grid_rows, part.grid_row);
    const int right =
        undealt(part.columns - 1, matrix->block_columns, matrix->grid_columns, part.grid_column);
    return (struct mpilab_stretch){(MPI_Offset)top * matrix->columns + left,
                                   (MPI_Offset)bottom * matrix->columns + right + 1};
}

struct mpilab_stretch mpilab_piece_of(struct mpilab_stretch all, MPI_Offset number,
                                      MPI_Offset length)
{
    if (number >= mpilab_pieces(all, length))
        return (struct mpilab_stretch){all.end, all.end};
    const MPI_Offset begin = all.begin + number * length;
    return (struct mpilab_stretch){begin, all.end - begin < length ? all.end : begin + length};
}

MPI_Offset mpilab_buffer_length(long usual)
{
    const long bytes = mpilab_tuning.buffer_bytes > 0 ? mpilab_tuning.buffer_bytes : usual;
    const long length = bytes / (long)sizeof(double);
    return length < 1 ? 1 : length > INT_MAX ? INT_MAX : length;
}

MPI_Offset mpilab_before(const struct mpilab_matrix *matrix, int rank, MPI_Offset element)
{
    if (matrix->columns == 0)
        return 0;
    const struct mpilab_part part = part_of(matrix, rank);
    const int row = (int)(element / matrix->columns), column = (int)(element % matrix->columns);
    const int above = dealt(row, matrix->block_rows, matrix->grid_rows, part.grid_row);
    const int has_row = row / matrix->block_rows % matrix->grid_rows == part.grid_row;
    const int left = dealt(column, matrix->block_columns, matrix->grid_columns, part.grid_column);
    return (MPI_Offset)above * part.columns + (has_row ? left : 0);
}

/* Copy a rank's elements of one row: `row` holds its columns `from` up to but not including
 * `until`. Returns how many elements were copied. */
static int pick_of_row(const struct mpilab_matrix *matrix, const struct mpilab_part *part, int from,
                       int until, const double *row, double *to)
{
    const int block = matrix->block_columns, places = matrix->grid_columns;
    const int first = dealt(from, block, places, part->grid_column);
    const int end = dealt(until, block, places, part->grid_column);
    for (int done = first, length; done < end; done += length) {
        const int left_of_block = block - done % block;
        length = end - done < left_of_block ? end - done : left_of_block;
        const int column = undealt(done, block, places, part->grid_column);
        memcpy(to + (done - first), row + (column - from), (size_t)length * sizeof *to);
    }
    return end - first;
}

void mpilab_pick(const struct mpilab_matrix *matrix, int rank, struct mpilab_stretch stretch,
                 const double *elements, double *to)
{
    if (stretch.begin == stretch.end)
        return;
    const struct mpilab_part part = part_of(matrix, rank);
    const int columns = matrix->columns;
    const int top = (int)(stretch.begin / columns);
    for (int i = dealt(top, matrix->block_rows, matrix->grid_rows, part.grid_row); i < part.rows;
         i++) {
        const int row = undealt(i, matrix->block_rows, matrix->grid_rows, part.grid_row);
        const MPI_Offset begin = (MPI_Offset)row * columns;
        if (begin >= stretch.end)
            break;
        const int from = stretch.begin > begin ? (int)(stretch.begin - begin) : 0;
        const int until = stretch.end - begin < columns ? (int)(stretch.end - begin) : columns;
        to +=
            pick_of_row(matrix, &part, from, until, elements + (begin + from - stretch.begin), to);
    }
}

int mpilab_read_stretch(MPI_File file, const struct mpilab_matrix *matrix,
                        struct mpilab_stretch stretch, double *elements)
{
    const int count = (int)(stretch.end - stretch.begin);
    MPI_Status status;
    const int err = MPI_File_read_at(file, mpilab_offset(matrix, stretch.begin), elements, count,
                                     MPI_DOUBLE, &status);
    return err == MPI_SUCCESS ? mpilab_all_came(&status, count) : err;
}

int mpilab_all_came(const MPI_Status *status, int count)
{
    int came;
    MPI_Get_count(status, MPI_DOUBLE, &came);
    return came == count ? MPI_SUCCESS : MPI_ERR_IO;
}
