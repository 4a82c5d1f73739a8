/* Open a matrix file on all ranks of a communicator, or on none.
 *
 *            look          agree      open        header        agree
 *   rank 0   2,056 bytes --\                   /- 16 x 16 --\
 *   rank 1   2,056 bytes ---+-- yes -- MPI_ --+-- 16 x 16 ---+-- yes
 *   rank 2   2,056 bytes --/           File_   \- 16 x 16 --/
 *                                      open
 *
 * Opening and closing a file are collective: a rank that gave up alone would leave the others
 * waiting, there or in the next collective. So each rank first checks the file without MPI, and a
 * problem on any rank ends the opening on all ranks.
 *
 * Cost: four small allreduces, and a broadcast of the problem if there is one.
 */
#include "matrix_file.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void mpilab_problem(char problem[MPILAB_PROBLEM_BYTES], const char *format, ...)
{
    if (problem[0] != '\0')
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(problem, MPILAB_PROBLEM_BYTES, format, values);
    va_end(values);
}

int mpilab_agree(MPI_Comm comm, char problem[MPILAB_PROBLEM_BYTES])
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int has_one = problem[0] != '\0';
    int least[2] = {has_one ? rank : size, has_one}; /* the first rank with one; do all have one? */
    MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT, MPI_MIN, comm);
    const int first = least[0], is_everywhere = least[1];
    if (first == size)
        return 0;
    if (rank == first && rank != 0 && !is_everywhere) {
        char alone[MPILAB_PROBLEM_BYTES];
        snprintf(alone, sizeof alone, "rank %d: %.*s", rank, MPILAB_PROBLEM_BYTES - 32, problem);
        memcpy(problem, alone, sizeof alone);
    }
    MPI_Bcast(problem, MPILAB_PROBLEM_BYTES, MPI_CHAR, first, comm);
    return 1;
}

MPI_Offset mpilab_look(const char *path, char problem[MPILAB_PROBLEM_BYTES])
{
    struct stat found;
    if (stat(path, &found) != 0)
        mpilab_problem(problem, "%s: cannot be opened: %s; look at its name and folder", path,
                       strerror(errno));
    else if (!S_ISREG(found.st_mode))
        mpilab_problem(problem, "%s: is %s, not a file; give the name of a matrix file", path,
                       S_ISDIR(found.st_mode) ? "a directory" : "something else");
    else if (access(path, R_OK) != 0)
        mpilab_problem(problem, "%s: cannot be read: %s; give yourself the right: chmod u+r", path,
                       strerror(errno));
    else
        return found.st_size;
    return -1;
}

static int swapped(int value)
{
    return (int)__builtin_bswap32((uint32_t)value);
}

/* The bytes of a matrix with this many rows and columns; -1 if no file can have that many. */
static MPI_Offset bytes_of(int rows, int columns)
{
    const MPI_Offset most = INT64_MAX / (MPI_Offset)sizeof(double) - MPILAB_HEADER_BYTES;
    if (rows < 1 || columns < 1 || rows > most / columns)
        return -1;
    return MPILAB_HEADER_BYTES + (MPI_Offset)rows * columns * (MPI_Offset)sizeof(double);
}

int mpilab_is_text(const void *first, size_t bytes)
{
    const unsigned char *const characters = first;
    for (size_t i = 0; i < bytes; i++)
        if (!isprint(characters[i]) && memchr("\t\r\n", characters[i], 3) == NULL)
            return 0;
    return bytes > 0;
}

void mpilab_check_header(const char *path, const int header[2], MPI_Offset bytes,
                         char problem[MPILAB_PROBLEM_BYTES])
{
    const int rows = header[0], columns = header[1];
    const MPI_Offset needed = bytes_of(rows, columns);
    if (bytes < MPILAB_HEADER_BYTES)
        mpilab_problem(problem, "%s: has %lld bytes, too few for the header of a matrix (%d); %s",
                       path, (long long)bytes, MPILAB_HEADER_BYTES,
                       "create the file again: mpilab matrix make");
    else if (needed == bytes)
        return;
    else if (mpilab_is_text(header, MPILAB_HEADER_BYTES))
        mpilab_problem(
            problem,
            "%s: is a text file; it takes a binary one here: mpilab matrix to-binary %s %s.bin",
            path, path, path);
    else if (bytes_of(swapped(rows), swapped(columns)) == bytes)
        mpilab_problem(problem,
                       "%s: written on a machine with the other byte order (%d x %d there); write "
                       "it as text there, and convert it here: mpilab matrix to-binary",
                       path, swapped(rows), swapped(columns));
    else if (rows < 1 || columns < 1)
        mpilab_problem(problem,
                       "%s: its header says %d rows and %d columns; both must be 1 or more. "
                       "Make it again: mpilab matrix make",
                       path, rows, columns);
    else if (needed < 0)
        mpilab_problem(problem,
                       "%s: its header says %d x %d, more than any file holds. Make it again: "
                       "mpilab matrix make",
                       path, rows, columns);
    else
        mpilab_problem(problem,
                       "%s: %s: its header says %d x %d, that is %lld bytes, and it has %lld. "
                       "Make it again: mpilab matrix make",
                       path, bytes < needed ? "truncated" : "too long", rows, columns,
                       (long long)needed, (long long)bytes);
}

static void mpi_problem(const char *path, const char *what, int error,
                        char problem[MPILAB_PROBLEM_BYTES])
{
    char said[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(error, said, &length);
    mpilab_problem(problem, "%s: cannot be %s with MPI-IO: %s; is its disk one that all hosts see?",
                   path, what, said);
}

/* Do all ranks see a file of the same length? */
static void compare_sizes(const char *path, MPI_Offset bytes, MPI_Comm comm,
                          char problem[MPILAB_PROBLEM_BYTES])
{
    int64_t least[2] = {bytes, -bytes}; /* the shortest, and the longest with its sign changed */
    MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT64_T, MPI_MIN, comm);
    if (least[0] != -least[1])
        mpilab_problem(problem,
                       "%s: some ranks see %lld bytes in it, others %lld; put one file on a disk "
                       "that all hosts see",
                       path, (long long)least[0], (long long)-least[1]);
}

static void read_header(const char *path, MPI_File file, int header[2],
                        char problem[MPILAB_PROBLEM_BYTES])
{
    MPI_Offset bytes = 0;
    MPI_Status status;
    int count = 0, error = MPI_File_get_size(file, &bytes);
    if (error == MPI_SUCCESS && bytes >= MPILAB_HEADER_BYTES)
        error = MPI_File_read_at(file, 0, header, 2, MPI_INT, &status);
    if (error != MPI_SUCCESS) {
        mpi_problem(path, "read", error, problem);
        return;
    }
    if (bytes >= MPILAB_HEADER_BYTES)
        MPI_Get_count(&status, MPI_INT, &count);
    mpilab_check_header(path, header, count == 2 ? bytes : 0, problem);
}

int mpilab_matrix_open(const char *path, MPI_Comm comm, MPI_Info info, MPI_File *file, int *rows,
                       int *columns, char problem[MPILAB_PROBLEM_BYTES])
{
    *file = MPI_FILE_NULL;
    const MPI_Offset bytes = mpilab_look(path, problem);
    if (mpilab_agree(comm, problem))
        return MPI_ERR_IO;
    compare_sizes(path, bytes, comm, problem);
    if (mpilab_agree(comm, problem)) /* ranks may have different names for the file */
        return MPI_ERR_IO;

    const int error = MPI_File_open(comm, path, MPI_MODE_RDONLY, info, file);
    if (error != MPI_SUCCESS)
        mpi_problem(path, "opened", error, problem);
    /* Closing is collective: if some ranks could not open the file, the others keep it open. */
    if (mpilab_agree(comm, problem))
        return MPI_ERR_IO;

    int header[2] = {0, 0};
    read_header(path, *file, header, problem);
    if (mpilab_agree(comm, problem)) {
        MPI_File_close(file);
        return MPI_ERR_IO;
    }
    *rows = header[0];
    *columns = header[1];
    return MPI_SUCCESS;
}
