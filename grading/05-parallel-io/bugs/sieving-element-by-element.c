%%kernel read_my_sieving
// Fault: reads one element at a time, whatever the buffer is.
#include "matrix.h"
#include "mpilab.h"
#include <stdlib.h>

/* Number in the file, from 0, of the element at place `index` of this part. */
static MPI_Offset element_at(const struct mpilab_matrix *matrix, struct mpilab_part part, int index)
{
    const int row =
        undealt(index / part.columns, matrix->block_rows, matrix->grid_rows, part.grid_row);
    const int column = undealt(index % part.columns, matrix->block_columns, matrix->grid_columns,
                               part.grid_column);
    return (MPI_Offset)row * matrix->columns + column;
}

int read_my_sieving(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);
    const int elements = mine.rows * mine.columns;
    if (elements == 0)
        return MPI_SUCCESS;

    const long bytes = mpilab_tuning.buffer_bytes > 0 ? mpilab_tuning.buffer_bytes : 4 << 20;
    const int room = bytes < 8 ? 1 : 1;
    double *const buffer = malloc((size_t)room * sizeof *buffer);
    if (buffer == NULL)
        return MPI_ERR_NO_MEM;

    const MPI_Offset end = element_at(matrix, mine, elements - 1) + 1;
    int done = 0, err = MPI_SUCCESS;
    for (MPI_Offset first = element_at(matrix, mine, 0); first < end && err == MPI_SUCCESS;
         first += room) {
        const int length = end - first < room ? (int)(end - first) : room;
        err = MPI_File_read_at(file, matrix->header_bytes + first * 8, buffer, length, MPI_DOUBLE,
                               MPI_STATUS_IGNORE);
        for (; done < elements && err == MPI_SUCCESS; done++) {
            const MPI_Offset place = element_at(matrix, mine, done) - first;
            if (place >= length)
                break;
            part[done] = buffer[place];
        }
    }
    free(buffer);
    return err;
}
