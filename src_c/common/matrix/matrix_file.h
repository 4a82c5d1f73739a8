/* Matrix files, and how ranks agree on a problem with one.
 *
 * A *problem* is a message with the file, what is wrong with which value, and what to do; "" if
 * nothing is wrong. mpilab/mpiio/files.py reports the same mistakes in the same words.
 */
#ifndef MPILAB_MATRIX_FILE_H
#define MPILAB_MATRIX_FILE_H

#include <mpi.h>
#include <stddef.h>

enum { MPILAB_PROBLEM_BYTES = 1024, MPILAB_HEADER_BYTES = 2 * sizeof(int) };

/* Record a problem, formatted as by printf; the first problem stays. */
__attribute__((format(printf, 2, 3))) void mpilab_problem(char problem[MPILAB_PROBLEM_BYTES],
                                                          const char *format, ...);

/* Collective: the problem of the lowest rank that has one becomes the problem of all, prefixed with
 * that rank unless all ranks or rank 0 have one. Returns 0 if no rank has one, otherwise 1, the
 * same on all ranks. */
int mpilab_agree(MPI_Comm comm, char problem[MPILAB_PROBLEM_BYTES]);

/* The bytes of the file as this rank sees it; -1 and a problem if it sees no file that it may
 * read. */
MPI_Offset mpilab_look(const char *path, char problem[MPILAB_PROBLEM_BYTES]);

/* Are these first bytes of a file ASCII? Then it is a text file: in the header of a binary file,
 * the first or the fourth byte is not ASCII for any possible number of rows. */
int mpilab_is_text(const void *first, size_t bytes);

/* Check that this is the header of a matrix in a binary file of `bytes` bytes; if not, record a
 * problem. */
void mpilab_check_header(const char *path, const int header[2], MPI_Offset bytes,
                         char problem[MPILAB_PROBLEM_BYTES]);

/* Collective: open a matrix file for reading with MPI-IO, with the default view, and read how many
 * rows and columns it has. Even `path` may differ from rank to rank.
 *
 * Returns MPI_SUCCESS, or MPI_ERR_IO and the same problem on all ranks: no rank waits for another
 * if some do not see the file, or see a different one. */
int mpilab_matrix_open(const char *path, MPI_Comm comm, MPI_Info info, MPI_File *file, int *rows,
                       int *columns, char problem[MPILAB_PROBLEM_BYTES]);

#endif
