/* A view of a file in which a rank sees its part of a matrix, and nothing else. */
#ifndef MPILAB_VIEWS_H
#define MPILAB_VIEWS_H

#include "matrix.h"

/* Collective over `comm`, on which the file is open: set the view of every rank, beginning after
 * the header. `hints` may be MPI_INFO_NULL. End the view with mpilab_default_view, even if a call
 * through it has failed.
 *
 * Returns MPI_ERR_COUNT on all ranks, before the view is changed, if the largest part has more
 * elements than one call can read, and MPI_ERR_TYPE if parts have several blocks and cyclic_view.h
 * is missing, as in a handout. */
int mpilab_view_part(MPI_File file, const struct mpilab_matrix *matrix, MPI_Comm comm,
                     MPI_Info hints);

/* Collective: restore the view that a file is opened with, all of it in bytes. */
int mpilab_default_view(MPI_File file);

/* MPI_ERR_IO if the file ends before the last element of a rank's part. For a read through a view,
 * MPI itself may report what was requested instead of what was read: ROMIO with data sieving, OMPIO
 * in collective reads. */
int mpilab_holds_part(MPI_File file, const struct mpilab_matrix *matrix, int rank);

#endif
