%%kernel read_my_two_phase
// Fault: an aggregator does as many rounds as its own domain has, the others as the first one has.
#include "matrix.h"
#include "mpilab.h"
#include <stdlib.h>

/* Elements of the file, behind its header, from `begin` to before `end`. */
struct stretch {
    MPI_Offset begin, end;
};

static MPI_Offset least(MPI_Offset a, MPI_Offset b)
{
    return a < b ? a : b;
}

/* Where domain `number` of so many begins: the first ones have an element more. */
static MPI_Offset begin_of(MPI_Offset total, int domains, int number)
{
    return total / domains * number + least(number, total % domains);
}

/* What aggregator `number` reads in this round: up to `room` elements of its domain. */
static struct stretch piece_of(const struct mpilab_matrix *matrix, int aggregators, int number,
                               MPI_Offset round, MPI_Offset room)
{
    const MPI_Offset total = (MPI_Offset)matrix->rows * matrix->columns;
    const MPI_Offset end = begin_of(total, aggregators, number + 1);
    const MPI_Offset begin = least(end, begin_of(total, aggregators, number) + round * room);
    return (struct stretch){begin, least(end, begin + room)};
}

/* How many elements of this rank's part stand before this element of the file. */
static int before(const struct mpilab_matrix *matrix, int rank, MPI_Offset element)
{
    const struct mpilab_part part = part_of(matrix, rank);
    const int row = (int)(element / matrix->columns), column = (int)(element % matrix->columns);
    const int rows = dealt(row, matrix->block_rows, matrix->grid_rows, part.grid_row);
    const int columns =
        dealt(column, matrix->block_columns, matrix->grid_columns, part.grid_column);
    const int is_mine = row / matrix->block_rows % matrix->grid_rows == part.grid_row;
    return rows * part.columns + (is_mine ? columns : 0);
}

/* Count what each rank gets of a piece, and sort the piece by ranks. */
static void sort_by_rank(const struct mpilab_matrix *matrix, struct stretch piece, int size,
                         const double *read, double *sorted, int *counts, int *displacements)
{
    for (int i = 0, next = 0; i < size; next += counts[i++]) {
        displacements[i] = next;
        counts[i] = before(matrix, i, piece.end) - before(matrix, i, piece.begin);
    }
    for (MPI_Offset e = piece.begin; e < piece.end; e++) {
        const int row = (int)(e / matrix->columns), column = (int)(e % matrix->columns);
        const int rank = row / matrix->block_rows % matrix->grid_rows * matrix->grid_columns +
                         column / matrix->block_columns % matrix->grid_columns;
        sorted[displacements[rank]++] = read[e - piece.begin];
    }
    for (int i = 0; i < size; i++)
        displacements[i] -= counts[i];
}

int read_my_two_phase(MPI_File file, const struct mpilab_matrix *matrix, double *part,
                      MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int wanted = mpilab_tuning.aggregators;
    const int aggregators = wanted > 0 && wanted < size ? wanted : size;
    const long bytes = mpilab_tuning.buffer_bytes > 0 ? mpilab_tuning.buffer_bytes : 1 << 20;
    const MPI_Offset room = bytes < 8 ? 1 : bytes / 8;
    const MPI_Offset total = (MPI_Offset)matrix->rows * matrix->columns;
    const MPI_Offset own = rank >= aggregators ? begin_of(total, aggregators, 1)
                                               : begin_of(total, aggregators, rank + 1) -
                                                     begin_of(total, aggregators, rank);
    const MPI_Offset rounds = (own + room - 1) / room;

    int *const counts = calloc(4 * (size_t)size, sizeof *counts);
    double *const read = malloc(2 * (size_t)room * sizeof *read);
    if (counts == NULL || read == NULL)
        return MPI_ERR_NO_MEM;
    int *const from = counts + size, *const received = from + size, *const to = received + size;
    double *const sorted = read + room;
    int err = MPI_SUCCESS;

    for (MPI_Offset round = 0; round < rounds; round++) {
        struct stretch piece = {0, 0}; /* only aggregators read */
        if (rank < aggregators)
            piece = piece_of(matrix, aggregators, rank, round, room);
        const int length = (int)(piece.end - piece.begin);
        if (length > 0 && err == MPI_SUCCESS)
            err = MPI_File_read_at(file, matrix->header_bytes + piece.begin * 8, read, length,
                                   MPI_DOUBLE, MPI_STATUS_IGNORE);
        sort_by_rank(matrix, piece, size, read, sorted, counts, from);

        for (int i = 0; i < aggregators; i++) {
            const struct stretch theirs = piece_of(matrix, aggregators, i, round, room);
            to[i] = before(matrix, rank, theirs.begin);
            received[i] = before(matrix, rank, theirs.end) - to[i];
        }
        /* Also after an error of one's own: the others wait. */
        const int sent =
            MPI_Alltoallv(sorted, counts, from, MPI_DOUBLE, part, received, to, MPI_DOUBLE, comm);
        err = err == MPI_SUCCESS ? sent : err;
    }
    free(counts);
    free(read);
    return err;
}
