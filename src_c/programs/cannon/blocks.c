/* The blocks of a rank, and where they lie in a whole matrix. */
#include "cannon.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int share(int total, int side)
{
    return total / side + (total % side != 0);
}

static struct mpilab_matrix spread(int rows, int columns, int side)
{
    return (struct mpilab_matrix){MPILAB_HEADER_BYTES,  rows, columns, share(rows, side),
                                  share(columns, side), side, side};
}

void check_sizes(const struct grid *grid, const struct files *files, const int a[2], const int b[2],
                 char *problem)
{
    if (a[1] != b[0])
        mpilab_problem(problem,
                       "%s is %d x %d and %s is %d x %d: the columns of the first have to be as "
                       "many as the rows of the second (%d and %d)",
                       files->a, a[0], a[1], files->b, b[0], b[1], a[1], b[0]);
    const int64_t row = share(a[0], grid->side), column = share(b[1], grid->side);
    const int64_t inner = share(a[1], grid->side);
    if (row * inner > INT_MAX || inner * column > INT_MAX || row * column > INT_MAX)
        mpilab_problem(problem,
                       "%s (%d x %d) and %s (%d x %d): blocks of more than %d elements on %d "
                       "ranks; take more ranks",
                       files->a, a[0], a[1], files->b, b[0], b[1], INT_MAX,
                       grid->side * grid->side);
}

int block_elements(const struct mpilab_matrix *matrix)
{
    return matrix->block_rows * matrix->block_columns;
}

static double *make_block(const struct mpilab_matrix *matrix)
{
    return need_memory((size_t)block_elements(matrix), sizeof(double), "a block");
}

void make_blocks(struct operands *operands, const struct grid *grid, struct sizes sizes)
{
    operands->a_matrix = spread(sizes.rows, sizes.inner, grid->side);
    operands->b_matrix = spread(sizes.inner, sizes.columns, grid->side);
    operands->c_matrix = spread(sizes.rows, sizes.columns, grid->side);
    operands->a = make_block(&operands->a_matrix);
    operands->b = make_block(&operands->b_matrix);
    operands->c = make_block(&operands->c_matrix);
}

void free_blocks(struct operands *operands)
{
    free(operands->a);
    free(operands->b);
    free(operands->c);
}

/* Where the part of a rank begins in the whole matrix. */
static size_t begin_of(const struct mpilab_matrix *matrix, const struct mpilab_part *part)
{
    return (size_t)part->grid_row * matrix->block_rows * matrix->columns +
           (size_t)part->grid_column * matrix->block_columns;
}

void cut_block(const struct mpilab_matrix *matrix, const double *whole, int rank, double *block)
{
    const struct mpilab_part part = part_of(matrix, rank);
    memset(block, 0, sizeof *block * (size_t)block_elements(matrix));
    for (int row = 0; row < part.rows; row++)
        memcpy(block + (size_t)row * matrix->block_columns,
               whole + begin_of(matrix, &part) + (size_t)row * matrix->columns,
               sizeof *block * (size_t)part.columns);
}

void put_block(const struct mpilab_matrix *matrix, double *whole, int rank, const double *block)
{
    const struct mpilab_part part = part_of(matrix, rank);
    for (int row = 0; row < part.rows; row++)
        memcpy(whole + begin_of(matrix, &part) + (size_t)row * matrix->columns,
               block + (size_t)row * matrix->block_columns, sizeof *block * (size_t)part.columns);
}
