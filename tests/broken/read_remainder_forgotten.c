/* Fault: every rank reads rows / grid_rows rows: what is left over, nobody reads.
 * Collective: read
 * Case: ranks=4 count=1 datatype=double matrix=7x8
 * Diagnosis: wrong-result
 * Pattern: part never read
 * Ranks: 0 1
 */
#include "matrix.h"
#include "mpilab.h"

MPILAB_READ(remainder_forgotten)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    const int first_column = mine.grid_column * matrix->block_columns;

    int err = MPI_SUCCESS;
    for (int i = 0; i < matrix->rows / matrix->grid_rows && err == MPI_SUCCESS; i++) {
        const int row = mine.grid_row * matrix->block_rows + i;
        double *into = part + i * mine.columns;
        err = MPI_File_read_at(file, element_offset(matrix, row, first_column), into, mine.columns,
                               MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
    return err;
}
