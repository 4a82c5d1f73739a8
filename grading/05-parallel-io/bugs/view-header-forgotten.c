%%kernel read_my_view
// Fault: the view begins at byte 0, with the header.
#include "matrix.h"
#include "mpilab.h"

/* Which elements of the file, behind the header, are the part of this rank. */
static int make_part_type(const struct mpilab_matrix *matrix, int rank, int size,
                          MPI_Datatype *type)
{
    int err = MPI_Type_create_darray(size, rank, 2, (int[]){matrix->rows, matrix->columns},
                                     (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC},
                                     (int[]){matrix->block_rows, matrix->block_columns},
                                     (int[]){matrix->grid_rows, matrix->grid_columns}, MPI_ORDER_C,
                                     MPI_DOUBLE, type);
    return err == MPI_SUCCESS ? MPI_Type_commit(type) : err;
}

int read_my_view(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const struct mpilab_part mine = part_of(matrix, rank);
    const int elements = mine.rows * mine.columns;

    MPI_Datatype type = MPI_DATATYPE_NULL;
    int err = MPI_SUCCESS;
    if (elements > 0)
        err = make_part_type(matrix, rank, size, &type);
    if (err == MPI_SUCCESS)
        err = MPI_File_set_view(file, 0, MPI_DOUBLE, elements > 0 ? type : MPI_DOUBLE, "native",
                                MPI_INFO_NULL);
    if (err == MPI_SUCCESS)
        err = MPI_File_read_all(file, part, elements, MPI_DOUBLE, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err = MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    if (type != MPI_DATATYPE_NULL)
        MPI_Type_free(&type);
    return err;
}
