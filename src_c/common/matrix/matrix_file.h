/* Matrix files, and how ranks agree on what is wrong with one.
 *
 * A *problem* is a message with the file, what is wrong with which value, and what to do; "" where
 * nothing is wrong. The same mistakes are told in the same words by mpilab/mpiio/files.py.
 */
#ifndef MPILAB_MATRIX_FILE_H
#define MPILAB_MATRIX_FILE_H

#include <mpi.h>
#include <stddef.h>

enum { MPILAB_PROBLEM_BYTES = 1024, MPILAB_HEADER_BYTES = 2 * sizeof(int) };

/* Say what is wrong, as printf does; the first problem stays. */
__attribute__((format(printf, 2, 3))) void mpilab_problem(char problem[MPILAB_PROBLEM_BYTES],
                                                          const char *format, ...);

/* Collective: the problem of the lowest rank that has one becomes the problem of all, with that
 * rank in front where it isn't everyone's or rank 0's. Returns 0 where no rank has one, otherwise
 * 1, the same on all ranks. */
int mpilab_agree(MPI_Comm comm, char problem[MPILAB_PROBLEM_BYTES]);

/* How many bytes this rank sees in the file; -1 and a problem where it sees no file that it may
 * read. */
MPI_Offset mpilab_look(const char *path, char problem[MPILAB_PROBLEM_BYTES]);

/* Are these first bytes of a file ASCII? Then it is a text file: the header of a binary one has
 * others in it, as the first byte or the fourth of a number of rows that can be is one. */
int mpilab_is_text(const void *first, size_t bytes);

/* Is this a header of a matrix, in a binary file of `bytes` bytes? If not, a problem. */
void mpilab_check_header(const char *path, const int header[2], MPI_Offset bytes,
                         char problem[MPILAB_PROBLEM_BYTES]);

/* Collective: open a matrix file for reading with MPI-IO, and read how many rows and columns it
 * has; the view is the default one. `path`, too, may differ from rank to rank.
 *
 * Returns MPI_SUCCESS, or, on all ranks alike, MPI_ERR_IO and one and the same problem: no rank
 * waits for another, whichever of them does not see the file, or sees another one. */
int mpilab_matrix_open(const char *path, MPI_Comm comm, MPI_Info info, MPI_File *file, int *rows,
                       int *columns, char problem[MPILAB_PROBLEM_BYTES]);

#endif
