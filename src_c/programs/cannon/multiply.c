/* Cannon's algorithm: C = A B from the blocks of all ranks.
 *
 * After the skew, every rank multiplies the blocks it has, passes A to the left and B upward, and
 * repeats this until it has used every block of its row of A and of its column of B once.
 *
 *   side = 2       skew           step 1              shift          step 2
 *     A00 A01      A00 A01        A00 B00  A01 B11    A01 A00        A01 B10  A00 B01
 *     A10 A11      A11 A10        A11 B10  A10 B01    A10 A11        A10 B00  A11 B11
 *
 * Source: Cannon (1969), see shift.c.
 * Cost: side products of blocks, the skew and (side - 1) shifts: 2 side (α + nβ) with n bytes a
 * block. Memory: a block of each matrix, two sums of the size of a block of C, and, in transit, a
 * copy of a block of A or B (MPI_Sendrecv_replace).
 */
#include "cannon.h"
#include <stdlib.h>

void multiply(const struct grid *grid, struct operands *operands)
{
    const int rows = operands->c_matrix.block_rows, columns = operands->c_matrix.block_columns;
    const int inner = operands->a_matrix.block_columns;
    int *row_exponents = need_memory((size_t)rows, sizeof(int), "exponents");
    int *column_exponents = need_memory((size_t)columns, sizeof(int), "exponents");
    struct sums sums;
    make_sums(&sums, rows, columns, operands->a_matrix.columns);

    scale_rows(grid->in_row, operands->a, rows, inner, row_exponents);
    scale_columns(grid->in_column, operands->b, inner, columns, column_exponents);
    skew(grid, operands);
    for (int step = 0; step < grid->side; step++) {
        if (step > 0)
            shift(grid, operands);
        add_product(&sums, operands->a, operands->b, inner);
    }
    round_sums(&sums, row_exponents, column_exponents, operands->c);

    free_sums(&sums);
    free(row_exponents);
    free(column_exponents);
}
