/* Cannon's algorithm for C = A B, with matrices in files: what its parts share.
 *
 * The ranks form a square grid. A rank has a *block* of each matrix: its part, as in matrix.h,
 * padded with zeros to the size of the largest part, so all blocks of a matrix have the same size.
 * Zeros add nothing to a sum; files are never padded.
 *
 *   A, 5 x 5 on 2 x 2 ranks      rank 1's part     its block
 *     a a a | b b                  b b               b b 0
 *     a a a | b b                  b b               b b 0
 *     a a a | b b                  b b               b b 0
 *     ------+----
 *     c c c | d d
 *     c c c | d d
 *
 * A run has three phases: reading and distributing A and B (load), computing (multiply), collecting
 * and writing C (store). The *stages* are three implementations of the first and the last.
 */
#ifndef MPILAB_CANNON_H
#define MPILAB_CANNON_H

#include "../../common/matrix/matrix_file.h"
#include "matrix.h"
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* rank = row * side + column */
struct grid {
    MPI_Comm comm;              /* all ranks */
    MPI_Comm in_row, in_column; /* those of my row, those of my column */
    int side, rank, row, column;
};

/* The sizes of C = A B: A is rows x inner, B is inner x columns. */
struct sizes {
    int rows, inner, columns;
};

/* The three matrices and this rank's blocks of them. */
struct operands {
    struct mpilab_matrix a_matrix, b_matrix, c_matrix;
    double *a, *b, *c;
};

/* The files of a run. C is written to `part`, which becomes `c` when all ranks have succeeded. Only
 * rank 0 knows what is below `part`. */
struct files {
    const char *a, *b, *c;
    const char *directory; /* of the report, or NULL */
    /* All ranks know it. */
    char part[PATH_MAX + sizeof ".part.XXXXXX"];
    char target[PATH_MAX]; /* `c`, or the file that it is a link to */
    mode_t mode;           /* that `c` had, or will have */
    MPI_Offset bytes;      /* its final length */
};

/* All ranks call both. If load fails, all ranks return 1 and at least rank 0 has the problem. If
 * store fails, the ranks that detected it have the problem. */
struct stage {
    int (*load)(const struct grid *, struct files *, struct operands *, char *problem);
    void (*store)(const struct grid *, const struct files *, const struct operands *,
                  char *problem);
};
extern const struct stage stage_1, stage_2, stage_3;

/* grid.c */
void make_grid(struct grid *grid, MPI_Comm comm, char *problem);
void free_grid(struct grid *grid);

/* blocks.c: the blocks of a rank, and where they lie in a whole matrix. */
void check_sizes(const struct grid *grid, const struct files *files, const int a[2], const int b[2],
                 char *problem);
void make_blocks(struct operands *operands, const struct grid *grid, struct sizes sizes);
void free_blocks(struct operands *operands);
int block_elements(const struct mpilab_matrix *matrix);
void cut_block(const struct mpilab_matrix *matrix, const double *whole, int rank, double *block);
void put_block(const struct mpilab_matrix *matrix, double *whole, int rank, const double *block);

/* whole.c: whole files, read and written by one rank with stdio. */
struct whole {
    struct sizes sizes;
    double *a, *b;
};
void read_whole(const struct grid *grid, struct files *files, struct whole *whole, char *problem);
void free_whole(struct whole *whole);
void write_whole(const struct files *files, const struct mpilab_matrix *matrix,
                 const double *elements, char *problem);

/* text.c: text files. An invalid header is a problem, and so is an invalid line. The elements come
 * after the header. */
int is_text(FILE *file);
void read_text_header(const char *path, FILE *file, int header[2], char *problem);
void read_text_elements(const char *path, FILE *file, const int header[2], double *elements,
                        char *problem);

/* output.c: C appears whole or not at all. All ranks claim its place; if that fails, all return 1
 * and have the problem. Rank 0 reserves disk space for it and finishes it; any rank may discard
 * it. */
int claim_output(struct files *files, const struct grid *grid, char *problem);
void reserve_output(struct files *files, const struct sizes *sizes, char *problem);
void finish_output(const struct files *files, char *problem);
void discard_output(void);

/* errors.c: print the reason, formatted as by printf, and end all ranks; nothing of C remains. From
 * then on, an MPI error on `comm`, or on communicators made from it later, does the same. */
__attribute__((format(printf, 1, 2))) void end_all(const char *format, ...);
void end_on_errors(MPI_Comm comm);

/* memory.c: for what a run requires; ends all ranks if there is no memory left. */
void *need_memory(size_t count, size_t bytes, const char *what);

/* shift.c: blocks travel around the rows and columns of the grid. */
void skew(const struct grid *grid, struct operands *operands);
void shift(const struct grid *grid, struct operands *operands);

/* sums.c: sums of products that do not depend on the order of their terms. */
enum { SUMS_AT_A_TIME = 16 };
struct sums {
    int rows, columns;   /* elements of C */
    int stride;          /* from one row to the next in memory: a multiple of SUMS_AT_A_TIME */
    double coarse, fine; /* the two grids that terms are rounded to, see sums.c */
    double *high, *low;
};
void make_sums(struct sums *sums, int rows, int columns, int inner);
void free_sums(struct sums *sums);
void round_sums(const struct sums *sums, const int row_exponents[], const int column_exponents[],
                double *c);

/* product.c */
void add_product(const struct sums *sums, const double *a, const double *b, int inner);

/* scale.c: powers of two that bring every element below 1. */
void scale_rows(MPI_Comm in_row, double *block, int rows, int columns, int exponents[]);
void scale_columns(MPI_Comm in_column, double *block, int rows, int columns, int exponents[]);

/* multiply.c: C = A B, from the blocks of all ranks. A and B are overwritten. */
void multiply(const struct grid *grid, struct operands *operands);

/* report.c */
enum { READ, COMPUTE, WRITE, PHASES };
struct report {
    const char *directory; /* NULL: no report */
    int rank;
    int64_t begin_ns[PHASES], end_ns[PHASES];
    int64_t base_bytes; /* the peak memory of this rank before the first phase */
};
void open_report(struct report *report, const struct grid *grid, char *problem);
void begin_phase(struct report *report, int phase);
void end_phase(struct report *report, int phase);
void write_report(const struct report *report, char *problem);

#endif
