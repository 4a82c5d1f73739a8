/* Fault: the view stays on the file.
 * Collective: read
 * Case: ranks=4 count=1 datatype=double matrix=6x8
 * Diagnosis: leak
 * Pattern: view left on the file
 * Ranks: 0 1 2 3
 */
#include "matrix.h"
#include "mpilab.h"

MPILAB_READ(view_stays)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    const int sizes[] = {matrix->rows, matrix->columns};
    const int own[] = {mine.rows, mine.columns};
    const int starts[] = {mine.grid_row * matrix->block_rows,
                          mine.grid_column * matrix->block_columns};
    MPI_Datatype rectangle;
    MPI_Type_create_subarray(2, sizes, own, starts, MPI_ORDER_C, MPI_DOUBLE, &rectangle);
    MPI_Type_commit(&rectangle);
    int err = MPI_File_set_view(file, matrix->header_bytes, MPI_DOUBLE, /* <- ranks 0 1 2 3 */
                                rectangle, "native", MPI_INFO_NULL);
    const int count = mine.rows * mine.columns;
    if (err == MPI_SUCCESS)
        err = MPI_File_read_all(file, part, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_Type_free(&rectangle);
    return err;
}
