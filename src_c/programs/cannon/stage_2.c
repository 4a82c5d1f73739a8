/* Stage 2: like stage 1, but sizes and blocks travel by collectives.
 *
 *   disk -- A, B --> rank 0 == MPI_Bcast of the sizes =====> all
 *                           == MPI_Scatter of A, then B ===> all
 *   disk <---- C --- rank 0 <= MPI_Gather of C ============= all
 *
 * MPI_Scatter sends consecutive pieces of memory. The blocks of a matrix are not consecutive: rank
 * 0 packs them first.
 *
 * Source: task 2 of the worksheet, see stage_1.c.
 * Cost: what the MPI library's algorithms cost, e.g. log2(P) α + (P-1) aβ for a scatter along a
 * binomial tree. Rank 0 still holds everything, for a while even twice.
 */
#include "cannon.h"
#include <stdlib.h>

static double *packing_room(const struct grid *grid, const struct mpilab_matrix *matrix)
{
    if (grid->rank != 0)
        return NULL;
    return need_memory((size_t)grid->side * grid->side * (size_t)block_elements(matrix),
                       sizeof(double), "all blocks of a matrix");
}

static void scatter(const struct grid *grid, const struct mpilab_matrix *matrix,
                    const double *whole, double *block)
{
    const int count = block_elements(matrix);
    double *packed = packing_room(grid, matrix);
    for (int rank = 0; packed != NULL && rank < grid->side * grid->side; rank++)
        cut_block(matrix, whole, rank, packed + (size_t)rank * count);
    MPI_Scatter(packed, count, MPI_DOUBLE, block, count, MPI_DOUBLE, 0, grid->comm);
    free(packed);
}

static int load(const struct grid *grid, struct files *files, struct operands *operands,
                char *problem)
{
    struct whole whole = {0};
    if (grid->rank == 0)
        read_whole(grid, files, &whole, problem);
    MPI_Bcast(&whole.sizes, 3, MPI_INT, 0, grid->comm); /* no rows: rank 0 has a problem */
    const int has_failed = whole.sizes.rows == 0;
    if (!has_failed) {
        make_blocks(operands, grid, whole.sizes);
        scatter(grid, &operands->a_matrix, whole.a, operands->a);
        scatter(grid, &operands->b_matrix, whole.b, operands->b);
    }
    free_whole(&whole);
    return has_failed;
}

static void store(const struct grid *grid, const struct files *files,
                  const struct operands *operands, char *problem)
{
    const struct mpilab_matrix *matrix = &operands->c_matrix;
    const int count = block_elements(matrix);
    double *packed = packing_room(grid, matrix);
    MPI_Gather(operands->c, count, MPI_DOUBLE, packed, count, MPI_DOUBLE, 0, grid->comm);
    if (grid->rank != 0)
        return;
    double *whole = need_memory((size_t)matrix->rows * (size_t)matrix->columns, sizeof *whole, "C");
    for (int rank = 0; rank < grid->side * grid->side; rank++)
        put_block(matrix, whole, rank, packed + (size_t)rank * count);
    free(packed);
    write_whole(files, matrix, whole, problem);
    free(whole);
}

const struct stage stage_2 = {load, store};
