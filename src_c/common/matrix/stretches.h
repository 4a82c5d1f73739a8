/* Stretches of the elements in a file: which rank owns which elements, and how they are read.
 *
 * A part keeps its elements in file order. So a rank's elements of any stretch of the file are
 * contiguous in its part, and begin after those that it has before the stretch:
 *
 *   5 x 4 in blocks of 5 x 1 on a grid of 1 x 2; a stretch of 7 elements, starting at element 3
 *     0 1 0 [1                 rank 0 has 2 elements before element 3, and 5 before element 10:
 *     0 1 0 1                      places 2, 3 and 4 of its part belong to this stretch
 *     0 1] 0 1                 rank 1 has 1 before element 3, and 5 before element 10:
 *     0 1 0 1                      places 1, 2, 3 and 4
 *     0 1 0 1
 */
#ifndef MPILAB_STRETCHES_H
#define MPILAB_STRETCHES_H

#include "matrix.h"
#include <limits.h>

/* The default number of bytes that a rank reads at a time when it reads independently: ROMIO's
 * default (ind_rd_buffer_size). */
enum { MPILAB_USUAL_BYTES = 4 << 20 };

/* Elements of the file, numbered from 0 row by row: `begin` up to but not including `end`. */
struct mpilab_stretch {
    MPI_Offset begin, end;
};

static inline struct mpilab_stretch mpilab_all_elements(const struct mpilab_matrix *matrix)
{
    return (struct mpilab_stretch){0, (MPI_Offset)matrix->rows * matrix->columns};
}

/* The position in the file of the element with this number. */
static inline MPI_Offset mpilab_offset(const struct mpilab_matrix *matrix, MPI_Offset element)
{
    return matrix->header_bytes + element * (MPI_Offset)sizeof(double);
}

/* From a rank's first element to its last, with everything in between; {0, 0} for an empty part. */
struct mpilab_stretch mpilab_span(const struct mpilab_matrix *matrix, int rank);

/* A stretch is cut into pieces of `length` elements (the last may be shorter): the number of
 * pieces, and the piece with this number. After the last one, pieces are empty. */
static inline MPI_Offset mpilab_pieces(struct mpilab_stretch all, MPI_Offset length)
{
    return (all.end - all.begin + length - 1) / length;
}
struct mpilab_stretch mpilab_piece_of(struct mpilab_stretch all, MPI_Offset number,
                                      MPI_Offset length);

/* How many elements a piece may have if one request reads it into one buffer: as many as fit into
 * mpilab_tuning.buffer_bytes, or into `usual` bytes if that is 0; at least one. */
MPI_Offset mpilab_buffer_length(long usual);

/* How many elements a rank has before this element of the file. */
MPI_Offset mpilab_before(const struct mpilab_matrix *matrix, int rank, MPI_Offset element);

/* Can the elements of any part be counted in an int, as MPI's calls do? */
static inline int mpilab_parts_fit(const struct mpilab_matrix *matrix)
{
    const struct mpilab_part largest = part_of(matrix, 0);
    return (MPI_Offset)largest.rows * largest.columns <= INT_MAX;
}

/* How many elements of a stretch belong to a rank. */
static inline int mpilab_share(const struct mpilab_matrix *matrix, int rank,
                               struct mpilab_stretch stretch)
{
    return (int)(mpilab_before(matrix, rank, stretch.end) -
                 mpilab_before(matrix, rank, stretch.begin));
}

/* Copy a rank's elements of a stretch, run by run, from `elements`, which holds all of the stretch,
 * to `to`. */
void mpilab_pick(const struct mpilab_matrix *matrix, int rank, struct mpilab_stretch stretch,
                 const double *elements, double *to);

/* Read a stretch of at most INT_MAX elements with one request. MPI_ERR_IO if the file is too
 * short. */
int mpilab_read_stretch(MPI_File file, const struct mpilab_matrix *matrix,
                        struct mpilab_stretch stretch, double *elements);

/* MPI_ERR_IO if fewer than `count` doubles were read: MPI reports no error if a file is too
 * short. */
int mpilab_all_came(const MPI_Status *status, int count);

#endif
