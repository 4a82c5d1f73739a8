/* How a read kernel is called, and the file that it reads: a header of two ints, the numbers of
 * rows and columns, then the elements, whose bits come from a stream. */
#include "harness.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef int read_kernel(MPI_File, const struct mpilab_matrix *, double *, MPI_Comm);

enum { WORDS_AT_A_TIME = 1 << 13, NO_CONTENTS = -1 };

/* The matrix of the case, with the header that every file has. */
static struct mpilab_matrix matrix_of(const struct subject *subject)
{
    struct mpilab_matrix matrix = subject->order->matrix;
    matrix.header_bytes = 2 * sizeof(int);
    return matrix;
}

struct blocks blocks_of_read(const struct subject *subject)
{
    const struct mpilab_matrix matrix = matrix_of(subject);
    const struct mpilab_part part = part_of(&matrix, subject->rank);
    return (struct blocks){0, (int64_t)part.rows * part.columns};
}

int call_read(struct subject *subject)
{
    read_kernel *const kernel = (read_kernel *)subject->kernel;
    const struct mpilab_matrix matrix = matrix_of(subject);
    return kernel(subject->file, &matrix, received_data(subject), subject->comm);
}

void name_matrix(char *path, const struct subject *subject, const char *directory)
{
    snprintf(path, PATH_MAX, "%s/%ld.matrix", directory, subject->order->id);
}

/* Returns 0, an errno, or NO_CONTENTS. */
static int write_elements(FILE *file, const struct mpilab_matrix *matrix,
                          const struct mpilab_case *order)
{
    uint64_t words[WORDS_AT_A_TIME];
    const int64_t total = (int64_t)matrix->rows * matrix->columns;
    for (int64_t done = 0; done < total; done += WORDS_AT_A_TIME) {
        const int64_t left = total - done;
        const int64_t count = left < WORDS_AT_A_TIME ? left : WORDS_AT_A_TIME;
        if (fill_contents(words, count * (int64_t)sizeof *words, order, 0, 0, FILE_STREAM,
                          done + 1) != 0)
            return NO_CONTENTS;
        if (fwrite(words, sizeof *words, (size_t)count, file) != (size_t)count)
            return errno;
    }
    return 0;
}

static int write_matrix(const char *path, const struct mpilab_matrix *matrix,
                        const struct mpilab_case *order)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return errno;
    const int header[2] = {matrix->rows, matrix->columns};
    int error = fwrite(header, sizeof header, 1, file) == 1 ? 0 : errno;
    if (error == 0)
        error = write_elements(file, matrix, order);
    if (fclose(file) != 0 && error == 0)
        error = errno;
    return error;
}

/* OMPIO takes the size of its collective buffer only from here; all other hints are left to the
 * kernel, in its view (mpilab/kernels/openmpi.py). */
static int open_with_hint(struct subject *subject, const char *path)
{
    char text[32];
    MPI_Info hints;
    MPI_Info_create(&hints);
    snprintf(text, sizeof text, "%ld", subject->order->buffer_bytes);
    if (subject->order->buffer_bytes > 0)
        MPI_Info_set(hints, "cb_buffer_size", text);
    const int err = MPI_File_open(subject->comm, path, MPI_MODE_RDONLY, hints, &subject->file);
    MPI_Info_free(&hints);
    return err;
}

int make_file(struct subject *subject, const char *directory)
{
    char path[PATH_MAX], said[MPI_MAX_ERROR_STRING];
    const struct mpilab_matrix matrix = matrix_of(subject);
    int length, error = 0;
    name_matrix(path, subject, directory);
    if (subject->rank == 0)
        error = write_matrix(path, &matrix, subject->order);
    if (error != 0 && error != NO_CONTENTS)
        harness_fail("%s: cannot be written: %s", path, strerror(error));
    int failed = fail_together(subject->parent, error != 0);
    if (!failed) {
        error = open_with_hint(subject, path);
        if (error != MPI_SUCCESS) {
            MPI_Error_string(error, said, &length);
            harness_fail("%s: cannot be opened: %s", path, said);
        }
        failed = fail_together(subject->parent, error != MPI_SUCCESS);
    }
    if (failed && subject->rank == 0)
        remove(path); /* a rank that has opened it cannot close it alone */
    return failed;
}

int free_file(struct subject *subject, const char *directory)
{
    char path[PATH_MAX];
    name_matrix(path, subject, directory);
    if (subject->file != MPI_FILE_NULL)
        MPI_File_close(&subject->file); /* all ranks have closed it when this returns */
    int failed = 0;
    if (subject->rank == 0 && remove(path) != 0)
        failed = harness_fail("%s: cannot be removed: %s", path, strerror(errno));
    /* Together, because a rank that failed alone would end all others. */
    return fail_together(subject->parent, failed);
}
