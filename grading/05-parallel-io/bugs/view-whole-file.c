%%kernel read_my_view
// Fault: every rank reads the whole file and picks its part: no view, and too many bytes.
#include "matrix.h"
#include "mpilab.h"
#include <stdlib.h>

int read_my_view(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    const int total = matrix->rows * matrix->columns;
    double *const all = malloc((size_t)total * sizeof *all + 1);
    if (all == NULL)
        return MPI_ERR_NO_MEM;
    const int err =
        MPI_File_read_at(file, matrix->header_bytes, all, total, MPI_DOUBLE, MPI_STATUS_IGNORE);
    for (int i = 0; i < mine.rows * mine.columns; i++) {
        const int row =
            undealt(i / mine.columns, matrix->block_rows, matrix->grid_rows, mine.grid_row);
        const int column = undealt(i % mine.columns, matrix->block_columns, matrix->grid_columns,
                                   mine.grid_column);
        part[i] = all[row * matrix->columns + column];
    }
    free(all);
    return err;
}
