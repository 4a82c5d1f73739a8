/* A view of a file in which a rank sees its part of a matrix, and nothing else. */
#ifndef MPILAB_VIEWS_H
#define MPILAB_VIEWS_H

#include "matrix.h"

/* Set the view of every rank of `comm`, which the file is open on: it begins behind the header.
 * `hints` may be MPI_INFO_NULL. Collective. The view goes with mpilab_default_view, also after an
 * error of what was done in it.
 *
 * MPI_ERR_COUNT, on all ranks and before the view is changed, where the largest part has more
 * elements than one call can read. */
int mpilab_view_part(MPI_File file, const struct mpilab_matrix *matrix, MPI_Comm comm,
                     MPI_Info hints);

/* Back to the view that a file is opened with: all of it, in bytes. Collective. */
int mpilab_default_view(MPI_File file);

/* MPI_ERR_IO if the file ends before the last element of a rank's part. What MPI itself tells of a
 * read through a view is what was asked for, not what came: ROMIO where it sieves, OMPIO where
 * ranks read together. */
int mpilab_holds_part(MPI_File file, const struct mpilab_matrix *matrix, int rank);

#endif
