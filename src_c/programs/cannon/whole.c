/* Whole files, read and written by one rank with stdio, which needs memory for complete matrices.
 * Input may be a text file; output is binary. */
#include "cannon.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source {
    const char *path;
    FILE *file;
    int header[2], is_text;
};

static struct source open_source(const char *path, char *problem)
{
    const MPI_Offset bytes = mpilab_look(path, problem);
    struct source source = {.path = path, .file = bytes < 0 ? NULL : fopen(path, "rb")};
    if (source.file == NULL) {
        mpilab_problem(problem, "%s: cannot be opened: %s", path, strerror(errno));
        return source;
    }
    source.is_text = is_text(source.file);
    if (source.is_text) {
        read_text_header(path, source.file, source.header, problem);
        return source;
    }
    const size_t got = fread(source.header, sizeof *source.header, 2, source.file);
    mpilab_check_header(path, source.header,
                        got == 2 ? bytes : (MPI_Offset)(got * sizeof *source.header), problem);
    return source;
}

static double *read_elements(const struct source *source, char *problem)
{
    const size_t count = (size_t)source->header[0] * (size_t)source->header[1];
    double *elements = malloc(sizeof *elements * count);
    if (elements == NULL)
        mpilab_problem(problem,
                       "%s: %d x %d is more than rank 0 has memory for; stage 3 needs no rank that "
                       "holds it all",
                       source->path, source->header[0], source->header[1]);
    else if (source->is_text)
        read_text_elements(source->path, source->file, source->header, elements, problem);
    else if (fread(elements, sizeof *elements, count, source->file) != count)
        mpilab_problem(problem, "%s: cannot be read to its end: %s", source->path,
                       ferror(source->file) ? strerror(errno) : "it was cut short meanwhile");
    return elements;
}

static void close_source(const struct source *source)
{
    if (source->file != NULL)
        fclose(source->file);
}

void read_whole(const struct grid *grid, struct files *files, struct whole *whole, char *problem)
{
    const struct source a = open_source(files->a, problem), b = open_source(files->b, problem);
    if (problem[0] == '\0')
        check_sizes(grid, files, a.header, b.header, problem);
    if (problem[0] == '\0')
        reserve_output(files, &(struct sizes){a.header[0], a.header[1], b.header[1]}, problem);
    if (problem[0] == '\0')
        whole->a = read_elements(&a, problem);
    if (problem[0] == '\0')
        whole->b = read_elements(&b, problem);
    if (problem[0] == '\0')
        whole->sizes = (struct sizes){a.header[0], a.header[1], b.header[1]};
    close_source(&a);
    close_source(&b);
}

void free_whole(struct whole *whole)
{
    free(whole->a);
    free(whole->b);
}

void write_whole(const struct files *files, const struct mpilab_matrix *matrix,
                 const double *elements, char *problem)
{
    const int header[2] = {matrix->rows, matrix->columns};
    const size_t count = (size_t)matrix->rows * (size_t)matrix->columns;
    FILE *file = fopen(files->part, "r+b");
    int is_whole = file != NULL && fwrite(header, sizeof header, 1, file) == 1 &&
                   fwrite(elements, sizeof *elements, count, file) == count;
    if (file != NULL)
        is_whole = fclose(file) == 0 && is_whole;
    if (!is_whole)
        mpilab_problem(problem, "%s: cannot be written: %s; is there room on the disk?",
                       files->part, strerror(errno));
}
