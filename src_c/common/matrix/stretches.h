/* Stretches of the elements in a file: what of them belongs to whom, and how they are read.
 *
 * A part has its elements in the order of the file. So what a rank has of any stretch of the file
 * stands in one piece in its part; how many elements it has in front of the stretch tells where:
 *
 *   5 x 4 in blocks of 5 x 1 on a grid of 1 x 2; a stretch of 7 elements, from element 3 on
 *
 *     0 1 0 [1                 rank 0 has 2 elements before element 3, and 5 before element 10:
 *     0 1 0 1                      places 2, 3 and 4 of its part are of this stretch
 *     0 1] 0 1                 rank 1 has 1 before element 3, and 5 before element 10:
 *     0 1 0 1                      places 1, 2, 3 and 4
 *     0 1 0 1
 */
#ifndef MPILAB_STRETCHES_H
#define MPILAB_STRETCHES_H

#include "matrix.h"
#include <limits.h>

/* How many bytes a rank that reads alone takes at a time, if nothing is said: ROMIO's default
 * (ind_rd_buffer_size). */
enum { MPILAB_USUAL_BYTES = 4 << 20 };

/* Elements of the file, counted from 0 row by row: from `begin` to before `end`. */
struct mpilab_stretch {
    MPI_Offset begin, end;
};

static inline struct mpilab_stretch mpilab_all_elements(const struct mpilab_matrix *matrix)
{
    return (struct mpilab_stretch){0, (MPI_Offset)matrix->rows * matrix->columns};
}

/* Where the element of this number begins in the file. */
static inline MPI_Offset mpilab_offset(const struct mpilab_matrix *matrix, MPI_Offset element)
{
    return matrix->header_bytes + element * (MPI_Offset)sizeof(double);
}

/* From the first to the last element of a rank, with all that lies between; {0, 0} of an empty
 * part. */
struct mpilab_stretch mpilab_span(const struct mpilab_matrix *matrix, int rank);

/* A stretch is cut into pieces of `length` elements, the last of which may be shorter: how many,
 * and the one of this number. After the last one they are empty. */
static inline MPI_Offset mpilab_pieces(struct mpilab_stretch all, MPI_Offset length)
{
    return (all.end - all.begin + length - 1) / length;
}
struct mpilab_stretch mpilab_piece_of(struct mpilab_stretch all, MPI_Offset number,
                                      MPI_Offset length);

/* How many elements a piece may have, to be read by one request into one buffer: as many as there
 * is room for in mpilab_tuning.buffer_bytes, or in `usual` bytes where that is 0; at least one. */
MPI_Offset mpilab_buffer_length(long usual);

/* How many elements a rank has in front of this element of the file. */
MPI_Offset mpilab_before(const struct mpilab_matrix *matrix, int rank, MPI_Offset element);

/* Can the elements of any part be counted in an int, as MPI's calls do? */
static inline int mpilab_parts_fit(const struct mpilab_matrix *matrix)
{
    const struct mpilab_part largest = part_of(matrix, 0);
    return (MPI_Offset)largest.rows * largest.columns <= INT_MAX;
}

/* How many elements of a stretch are a rank's. */
static inline int mpilab_share(const struct mpilab_matrix *matrix, int rank,
                               struct mpilab_stretch stretch)
{
    return (int)(mpilab_before(matrix, rank, stretch.end) -
                 mpilab_before(matrix, rank, stretch.begin));
}

/* Copy what a rank has of a stretch, run by run: from `elements`, which are all of the stretch, to
 * `to`. */
void mpilab_pick(const struct mpilab_matrix *matrix, int rank, struct mpilab_stretch stretch,
                 const double *elements, double *to);

/* Read a stretch of at most INT_MAX elements, by one request. MPI_ERR_IO if the file ends before
 * it. */
int mpilab_read_stretch(MPI_File file, const struct mpilab_matrix *matrix,
                        struct mpilab_stretch stretch, double *elements);

/* MPI_ERR_IO if what came are fewer than `count` doubles: where a file ends too early, MPI reports
 * no error. */
int mpilab_all_came(const MPI_Status *status, int count);

#endif
