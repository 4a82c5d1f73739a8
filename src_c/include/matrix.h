/* A matrix of doubles in a file, and its distribution over a grid of ranks.
 *
 * Block (i, j) of the matrix belongs to the rank in row i mod grid_rows and column j mod
 * grid_columns of the grid: the two-dimensional block-cyclic distribution of ScaLAPACK. If each
 * rank has a single block, this is the plain block distribution. The elements of a rank are its
 * *part*: its rows by its columns, row after row, without gaps; a part may be empty.
 *
 *   6 x 6 in blocks of 2 x 3 on a grid of 2 x 2      rank = row of the grid * grid_columns
 *     0 0 0 | 1 1 1                                         + column of the grid
 *     0 0 0 | 1 1 1
 *     2 2 2 | 3 3 3      The part of rank 0 is four rows of three elements: rows 0, 1, 4 and 5
 *     2 2 2 | 3 3 3      of the matrix.
 *     0 0 0 | 1 1 1
 *     0 0 0 | 1 1 1
 *
 * Source: Choi et al. (1996), "ScaLAPACK: a portable linear algebra library for distributed memory
 * computers", section 2.
 */
#ifndef MPILAB_MATRIX_H
#define MPILAB_MATRIX_H

#include <mpi.h>

/* In the file, the elements follow row by row after a header: the numbers of rows and columns, as
 * two ints. */
struct mpilab_matrix {
    MPI_Offset header_bytes; /* before the first element */
    int rows, columns;
    int block_rows, block_columns;
    int grid_rows, grid_columns; /* their product is the number of ranks */
};

struct mpilab_part {
    int grid_row, grid_column; /* position of the rank in the grid */
    int rows, columns;         /* of the part; a part without rows may have columns */
};

/* How many of `total` rows belong to row `place` of the `places` rows of the grid, if they are
 * distributed cyclically in blocks of `block`. (ScaLAPACK's NUMROC; the same for columns.) */
static inline int dealt(int total, int block, int places, int place)
{
    const int whole = total / block, turns = whole / places, last = whole % places;
    const int blocks = turns + (place < last);
    return blocks * block + (place == last ? total % block : 0);
}

/* Which row of the matrix is row `index` of a part in row `place` of the grid; the same for
 * columns. (ScaLAPACK's INDXL2G.) */
static inline int undealt(int index, int block, int places, int place)
{
    return (index / block * places + place) * block + index % block;
}

static inline struct mpilab_part part_of(const struct mpilab_matrix *matrix, int rank)
{
    const int row = rank / matrix->grid_columns, column = rank % matrix->grid_columns;
    return (struct mpilab_part){
        row, column, dealt(matrix->rows, matrix->block_rows, matrix->grid_rows, row),
        dealt(matrix->columns, matrix->block_columns, matrix->grid_columns, column)};
}

/* Where the element in this row and column of the matrix begins in the file. */
static inline MPI_Offset element_offset(const struct mpilab_matrix *matrix, int row, int column)
{
    return matrix->header_bytes +
           ((MPI_Offset)row * matrix->columns + column) * (MPI_Offset)sizeof(double);
}

#endif
