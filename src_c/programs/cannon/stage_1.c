/* Stage 1: rank 0 reads both files, text or binary, and sends every rank its sizes and blocks, one
 * rank after another; at the end it receives the blocks of C in the same order, and writes the
 * file.
 *
 *   disk -- A, B --> rank 0 -- sizes, A01, B01 --> rank 1
 *                           -- sizes, A10, B10 --> rank 2      each in its turn, the others wait
 *                           -- sizes, A11, B11 --> rank 3
 *
 * Source: the base case of the worksheet, Chourdakis, Knapp, Simson (2016), "MPI collectives and
 * MPI-IO", Technische Universität München.
 * Cost: (P-1) (3α + (a+b)β) with a and b bytes a block, all through rank 0, and (P-1) (α + cβ) on
 * the way back. Rank 0 holds A and B, later C, as a whole, which limits the size of the matrices.
 */
#include "cannon.h"
#include <stdlib.h>

enum { TAG_SIZES = 11, TAG_BLOCK = 12 };

/* Send all ranks the sizes; there are no rows if rank 0 has a problem. */
static void tell_sizes(const struct grid *grid, struct sizes *sizes)
{
    if (grid->rank != 0)
        MPI_Recv(sizes, 3, MPI_INT, 0, TAG_SIZES, grid->comm, MPI_STATUS_IGNORE);
    for (int rank = 1; grid->rank == 0 && rank < grid->side * grid->side; rank++)
        MPI_Send(sizes, 3, MPI_INT, rank, TAG_SIZES, grid->comm);
}

static void deal_out(const struct grid *grid, const struct mpilab_matrix *matrix,
                     const double *whole, double *block)
{
    const int count = block_elements(matrix);
    if (grid->rank != 0) {
        MPI_Recv(block, count, MPI_DOUBLE, 0, TAG_BLOCK, grid->comm, MPI_STATUS_IGNORE);
        return;
    }
    /* Rank 0's own block comes last: until then its memory holds the other ranks' blocks in
     * transit. */
    for (int rank = grid->side * grid->side - 1; rank >= 0; rank--) {
        cut_block(matrix, whole, rank, block);
        if (rank > 0)
            MPI_Send(block, count, MPI_DOUBLE, rank, TAG_BLOCK, grid->comm);
    }
}

static int load(const struct grid *grid, struct files *files, struct operands *operands,
                char *problem)
{
    struct whole whole = {0};
    if (grid->rank == 0)
        read_whole(grid, files, &whole, problem);
    tell_sizes(grid, &whole.sizes);
    const int has_failed = whole.sizes.rows == 0;
    if (!has_failed) {
        make_blocks(operands, grid, whole.sizes);
        deal_out(grid, &operands->a_matrix, whole.a, operands->a);
        deal_out(grid, &operands->b_matrix, whole.b, operands->b);
    }
    free_whole(&whole);
    return has_failed;
}

static void store(const struct grid *grid, const struct files *files,
                  const struct operands *operands, char *problem)
{
    const struct mpilab_matrix *matrix = &operands->c_matrix;
    const int count = block_elements(matrix);
    if (grid->rank != 0) {
        MPI_Send(operands->c, count, MPI_DOUBLE, 0, TAG_BLOCK, grid->comm);
        return;
    }
    double *whole = need_memory((size_t)matrix->rows * (size_t)matrix->columns, sizeof *whole, "C");
    double *block = need_memory((size_t)count, sizeof *block, "a block");
    put_block(matrix, whole, 0, operands->c);
    for (int rank = 1; rank < grid->side * grid->side; rank++) {
        MPI_Recv(block, count, MPI_DOUBLE, rank, TAG_BLOCK, grid->comm, MPI_STATUS_IGNORE);
        put_block(matrix, whole, rank, block);
    }
    write_whole(files, matrix, whole, problem);
    free(block);
    free(whole);
}

const struct stage stage_1 = {load, store};
