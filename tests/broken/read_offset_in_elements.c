/* Fault: the offset of a row is counted in elements, and taken for bytes.
 * Collective: read
 * Case: ranks=4 count=1 datatype=double matrix=6x8
 * Diagnosis: wrong-result
 * Pattern: elements counted as bytes
 * Ranks: 0 1 2 3
 */
#include "matrix.h"
#include "mpilab.h"

MPILAB_READ(offset_in_elements)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    const int first_column = mine.grid_column * matrix->block_columns;

    int err = MPI_SUCCESS;
    for (int i = 0; i < mine.rows && err == MPI_SUCCESS; i++) {
        const int row = mine.grid_row * matrix->block_rows + i;
        const MPI_Offset at = matrix->header_bytes + row * matrix->columns + first_column;
        double *into = part + i * mine.columns;
        err = MPI_File_read_at(file, at, into, mine.columns, MPI_DOUBLE, /* <- rank 0 */
                               MPI_STATUS_IGNORE);
    }
    return err;
}
