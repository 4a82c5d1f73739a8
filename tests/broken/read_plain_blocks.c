/* Fault: a part is read as one rectangle, although blocks are dealt out in turn.
 * Collective: read
 * Case: ranks=4 count=1 datatype=double matrix="8x8 by 2x2 on 2x2"
 * Diagnosis: wrong-result
 * Pattern: block-cyclic distribution ignored
 * Ranks: 0 1 2 3
 */
#include "matrix.h"
#include "mpilab.h"

MPILAB_READ(plain_blocks)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    const int first_row = mine.grid_row * mine.rows, first_column = mine.grid_column * mine.columns;

    int err = MPI_SUCCESS;
    for (int i = 0; i < mine.rows && err == MPI_SUCCESS; i++) {
        const MPI_Offset at = element_offset(matrix, first_row + i, first_column);
        double *into = part + i * mine.columns;
        err = MPI_File_read_at(file, at, into, mine.columns, MPI_DOUBLE, /* <- rank 0 */
                               MPI_STATUS_IGNORE);
    }
    return err;
}
