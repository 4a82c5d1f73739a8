/* Fault: the elements are looked for from the beginning of the file on, where the header is.
 * Collective: read
 * Case: ranks=4 count=1 datatype=double matrix=6x8
 * Diagnosis: wrong-result
 * Pattern: header not skipped
 * Ranks: 0 1 2 3
 */
#include "matrix.h"
#include "mpilab.h"

MPILAB_READ(header_not_skipped)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    const MPI_Offset wide = matrix->columns;
    const int first_column = mine.grid_column * matrix->block_columns;

    int err = MPI_SUCCESS;
    for (int i = 0; i < mine.rows && err == MPI_SUCCESS; i++) {
        const MPI_Offset row = mine.grid_row * matrix->block_rows + i;
        const MPI_Offset at = (row * wide + first_column) * (MPI_Offset)sizeof(double);
        double *into = part + i * mine.columns;
        err = MPI_File_read_at(file, at, into, mine.columns, MPI_DOUBLE, /* <- rank 0 */
                               MPI_STATUS_IGNORE);
    }
    return err;
}
