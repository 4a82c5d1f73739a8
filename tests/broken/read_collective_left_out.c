/* Fault: a rank whose part is empty returns, although all have to come to the collective read.
 * Collective: read
 * Case: ranks=4 count=1 datatype=double matrix="3x8 on 4x1"
 * Diagnosis: deadlock
 * Pattern: a collective that a rank never enters
 * Ranks: 3
 */
#include "matrix.h"
#include "mpilab.h"

MPILAB_READ(collective_left_out)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    if (mine.rows == 0)
        return MPI_SUCCESS;
    const MPI_Offset at = element_offset(matrix, mine.grid_row * matrix->block_rows, 0);
    const int count = mine.rows * mine.columns;
    return MPI_File_read_at_all(file, at, part, count, MPI_DOUBLE, /* <- ranks 0 1 2 */
                                MPI_STATUS_IGNORE);
}
