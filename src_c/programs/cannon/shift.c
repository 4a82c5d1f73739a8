/* How blocks travel in Cannon's algorithm.
 *
 * The skew brings matching blocks together: row r of the grid moves A by r to the left, and column
 * c moves B by c upward. From then on, every rank passes its block of A to the left and its block
 * of B upward, and so gets all pairs A(r, l), B(l, c) of its row and column.
 *
 *   A(r, l) on 3 x 3: l at        after the skew       after a shift
 *       0 1 2                         0 1 2                1 2 0
 *       0 1 2                         1 2 0                2 0 1
 *       0 1 2                         2 0 1                0 1 2
 *
 * Source: Cannon (1969), "A cellular computer to implement the Kalman filter algorithm", PhD
 * thesis, Montana State University.
 * Cost for each shift: 2 (α + nβ) with n bytes a block; the skew costs the same, except for ranks
 * in the first row or column.
 */
#include "cannon.h"

enum { TAG_A = 1, TAG_B = 2 };

static int rank_at(const struct grid *grid, int row, int column)
{
    const int side = grid->side;
    return (row + side) % side * side + (column + side) % side;
}

static void move_a(const struct grid *grid, struct operands *operands, int steps)
{
    if (steps % grid->side != 0)
        MPI_Sendrecv_replace(operands->a, block_elements(&operands->a_matrix), MPI_DOUBLE,
                             rank_at(grid, grid->row, grid->column - steps), TAG_A,
                             rank_at(grid, grid->row, grid->column + steps), TAG_A, grid->comm,
                             MPI_STATUS_IGNORE);
}

static void move_b(const struct grid *grid, struct operands *operands, int steps)
{
    if (steps % grid->side != 0)
        MPI_Sendrecv_replace(operands->b, block_elements(&operands->b_matrix), MPI_DOUBLE,
                             rank_at(grid, grid->row - steps, grid->column), TAG_B,
                             rank_at(grid, grid->row + steps, grid->column), TAG_B, grid->comm,
                             MPI_STATUS_IGNORE);
}

void skew(const struct grid *grid, struct operands *operands)
{
    move_a(grid, operands, grid->row);
    move_b(grid, operands, grid->column);
}

void shift(const struct grid *grid, struct operands *operands)
{
    move_a(grid, operands, 1);
    move_b(grid, operands, 1);
}
