/* Strided read.
 *
 * Every rank requests each run of its part that is contiguous in the file: one request per row and
 * block column. Ranks do not communicate, and read nothing that they do not need. But the requests
 * are many and small.
 *
 *   a row of the matrix in the file, and who reads what of it (blocks of 3 columns, P = 2)
 *     | 0 0 0 | 1 1 1 | 0 0 0 | 1 1 1 |
 *       ^^^^^   ^^^^^   ^^^^^   ^^^^^     4 requests, of 24 bytes each
 *
 * Requests: rows * ceil_div(columns, block_columns)
 * Busiest:  part_rows * ceil_div(part_columns, block_columns)
 *           of rank 0, whose part is the largest
 * Read:     N
 * Source: Thakur, Gropp, Lusk (1999), "Data sieving and collective I/O in ROMIO", section 2.
 */
#include "../common/matrix/stretches.h"
#include "mpilab.h"

/* One row of the part: from `at` on, a run for each of its blocks. */
static int read_row(MPI_File file, const struct mpilab_matrix *matrix, struct mpilab_part part,
                    int row, double *at)
{
    const int block = matrix->block_columns;
    int err = MPI_SUCCESS;
    for (int done = 0, length; done < part.columns && err == MPI_SUCCESS; done += length) {
        length = part.columns - done < block ? part.columns - done : block;
        const int column = undealt(done, block, matrix->grid_columns, part.grid_column);
        const MPI_Offset begin = (MPI_Offset)row * matrix->columns + column;
        const struct mpilab_stretch run = {begin, begin + length};
        err = mpilab_read_stretch(file, matrix, run, at + done);
    }
    return err;
}

int read_strided(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);

    int err = MPI_SUCCESS;
    for (int i = 0; i < mine.rows && err == MPI_SUCCESS; i++) {
        const int row = undealt(i, matrix->block_rows, matrix->grid_rows, mine.grid_row);
        err = read_row(file, matrix, mine, row, part + (ptrdiff_t)i * mine.columns);
    }
    return err;
}
