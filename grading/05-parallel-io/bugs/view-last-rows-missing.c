%%kernel read_my_view
// Fault: takes it that the rows divide by those of the grid; knows no cyclic blocks.
#include "matrix.h"
#include "mpilab.h"

int read_my_view(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);

    MPI_Datatype type = MPI_DOUBLE;
    int err = MPI_SUCCESS;
    const int elements = matrix->rows / matrix->grid_rows * mine.columns;
    if (elements > 0) {
        err = MPI_Type_create_subarray(
            2, (int[]){matrix->rows, matrix->columns},
            (int[]){matrix->rows / matrix->grid_rows, mine.columns},
            (int[]){mine.grid_row * matrix->block_rows, mine.grid_column * matrix->block_columns},
            MPI_ORDER_C, MPI_DOUBLE, &type);
        if (err == MPI_SUCCESS)
            err = MPI_Type_commit(&type);
    }
    if (err == MPI_SUCCESS)
        err = MPI_File_set_view(file, matrix->header_bytes, MPI_DOUBLE, type, "native",
                                MPI_INFO_NULL);
    if (err == MPI_SUCCESS)
        err = MPI_File_read_all(file, part, elements, MPI_DOUBLE, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err = MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    if (elements > 0)
        MPI_Type_free(&type);
    return err;
}
