%%kernel read_my_view
// Fault: a request for each run of the part, and no view at all.
#include "matrix.h"
#include "mpilab.h"

int read_my_view(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
{
    int rank, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    for (int i = 0; i < mine.rows; i++) {
        const int row = undealt(i, matrix->block_rows, matrix->grid_rows, mine.grid_row);
        for (int j = 0; j < mine.columns && err == MPI_SUCCESS; j += matrix->block_columns) {
            const int column =
                undealt(j, matrix->block_columns, matrix->grid_columns, mine.grid_column);
            const int left = mine.columns - j;
            const int run = left < matrix->block_columns ? left : matrix->block_columns;
            err = MPI_File_read_at(file, element_offset(matrix, row, column),
                                   part + i * mine.columns + j, run, MPI_DOUBLE,
                                   MPI_STATUS_IGNORE);
        }
    }
    return err;
}
