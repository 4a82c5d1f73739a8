/* Fault: a row of the matrix is taken to have as many elements as the matrix has rows.
 * Collective: read
 * Case: ranks=4 count=1 datatype=double matrix=6x8
 * Diagnosis: wrong-result
 * Pattern: rows and columns swapped
 * Ranks: 0 1 2 3
 */
#include "matrix.h"
#include "mpilab.h"

MPILAB_READ(rows_as_width)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    const int first_column = mine.grid_column * matrix->block_columns;

    int err = MPI_SUCCESS;
    for (int i = 0; i < mine.rows && err == MPI_SUCCESS; i++) {
        const MPI_Offset row = mine.grid_row * matrix->block_rows + i;
        const MPI_Offset before = row * matrix->rows + first_column;
        double *into = part + i * mine.columns;
        const MPI_Offset at = matrix->header_bytes + before * (MPI_Offset)sizeof(double);
        err = MPI_File_read_at(file, at, into, mine.columns, MPI_DOUBLE, /* <- rank 0 */
                               MPI_STATUS_IGNORE);
    }
    return err;
}
