/* Stage 3: every rank reads its own blocks with MPI-IO, and writes its own block of C.
 *
 *   file    | rows, columns | a a a b b | a a a b b | a a a b b | c c c d d | c c c d d |
 *   rank 1                          ===         ===         ===
 *           |<-- header --->|  a view: a subarray of what follows the header
 *
 * Through the view, the file contains a rank's own part only, row by row. Because all ranks read at
 * once (read_all), the MPI library can merge their many small requests into a few large ones. A
 * second subarray skips the padding of the block in memory.
 *
 * Source: task 3 of the worksheet, see stage_1.c; MPI 4.1, sections 14.3 and 14.4.
 * Cost: no rank holds more than multiply.c needs and the MPI library buffers. Requests: see lab 05.
 */
#include "../../common/matrix/views.h"
#include "cannon.h"

/* A rank's part within its block in memory. There are no empty subarrays: without a part, any type
 * will do. */
static void make_type(const struct mpilab_matrix *matrix, const struct mpilab_part *part,
                      MPI_Datatype *in_memory)
{
    if (part->rows == 0 || part->columns == 0)
        MPI_Type_dup(MPI_DOUBLE, in_memory);
    else
        MPI_Type_create_subarray(2, (int[]){matrix->block_rows, matrix->block_columns},
                                 (int[]){part->rows, part->columns}, (int[]){0, 0}, MPI_ORDER_C,
                                 MPI_DOUBLE, in_memory);
    MPI_Type_commit(in_memory);
}

typedef int transfer(MPI_File, double *, int, MPI_Datatype, MPI_Status *);

static int read_all(MPI_File file, double *block, int count, MPI_Datatype type, MPI_Status *status)
{
    return MPI_File_read_all(file, block, count, type, status);
}

static int write_all(MPI_File file, double *block, int count, MPI_Datatype type, MPI_Status *status)
{
    return MPI_File_write_all(file, block, count, type, status);
}

/* Collective, also for ranks without a part: transfer this rank's part between its block and the
 * file. Returns the first error. */
static int transfer_part(const struct grid *grid, MPI_File file, const struct mpilab_matrix *matrix,
                         double *block, transfer *all)
{
    const struct mpilab_part part = part_of(matrix, grid->rank);
    const int elements = part.rows * part.columns;
    MPI_Status status;
    MPI_Datatype in_memory;
    int count;
    make_type(matrix, &part, &in_memory);
    int error = mpilab_view_part(file, matrix, grid->comm, MPI_INFO_NULL);
    if (error == MPI_SUCCESS)
        error = all(file, block, elements > 0, in_memory, &status);
    MPI_Type_free(&in_memory);
    if (error != MPI_SUCCESS)
        return error;
    MPI_Get_elements(&status, MPI_DOUBLE, &count);
    return count == elements ? MPI_SUCCESS : MPI_ERR_IO;
}

static void read_part(const struct grid *grid, const char *path, MPI_File file,
                      const struct mpilab_matrix *matrix, double *block, char *problem)
{
    int error = transfer_part(grid, file, matrix, block, read_all);
    /* OMPIO counts what was requested, not what was read. */
    if (error == MPI_SUCCESS)
        error = mpilab_holds_part(file, matrix, grid->rank);
    if (error != MPI_SUCCESS)
        mpilab_problem(problem, "%s: not all of its elements came; was the file changed meanwhile?",
                       path);
}

static int load(const struct grid *grid, struct files *files, struct operands *operands,
                char *problem)
{
    MPI_File a_file, b_file;
    int a[2], b[2];
    if (mpilab_matrix_open(files->a, grid->comm, MPI_INFO_NULL, &a_file, &a[0], &a[1], problem))
        return 1;
    if (mpilab_matrix_open(files->b, grid->comm, MPI_INFO_NULL, &b_file, &b[0], &b[1], problem)) {
        MPI_File_close(&a_file);
        return 1;
    }
    const struct sizes sizes = {a[0], a[1], b[1]};
    check_sizes(grid, files, a, b, problem);
    if (grid->rank == 0 && problem[0] == '\0')
        reserve_output(files, &sizes, problem);
    int has_failed = mpilab_agree(grid->comm, problem);
    if (!has_failed) {
        make_blocks(operands, grid, sizes);
        read_part(grid, files->a, a_file, &operands->a_matrix, operands->a, problem);
        read_part(grid, files->b, b_file, &operands->b_matrix, operands->b, problem);
        has_failed = mpilab_agree(grid->comm, problem);
    }
    MPI_File_close(&a_file);
    MPI_File_close(&b_file);
    return has_failed;
}

static void write_header(const struct files *files, MPI_File file,
                         const struct mpilab_matrix *matrix, char *problem)
{
    const int header[2] = {matrix->rows, matrix->columns};
    if (MPI_File_write_at(file, 0, header, 2, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        mpilab_problem(problem, "%s: its header cannot be written; is there room on the disk?",
                       files->part);
}

static void store(const struct grid *grid, const struct files *files,
                  const struct operands *operands, char *problem)
{
    MPI_File file;
    mpilab_look(files->part, problem); /* rank 0 has made it; do all see it? */
    if (mpilab_agree(grid->comm, problem))
        return;
    if (MPI_File_open(grid->comm, files->part, MPI_MODE_WRONLY, MPI_INFO_NULL, &file) !=
        MPI_SUCCESS)
        mpilab_problem(problem, "%s: cannot be opened with MPI-IO", files->part);
    if (mpilab_agree(grid->comm, problem))
        return;
    if (grid->rank == 0)
        write_header(files, file, &operands->c_matrix, problem);
    if (transfer_part(grid, file, &operands->c_matrix, operands->c, write_all) != MPI_SUCCESS)
        mpilab_problem(problem, "%s: cannot be written; is there room on the disk?", files->part);
    if (MPI_File_close(&file) != MPI_SUCCESS)
        mpilab_problem(problem, "%s: cannot be closed; is there room on the disk?", files->part);
}

const struct stage stage_3 = {load, store};
