/* The product of two blocks, added to the sums: the local part of Cannon's algorithm.
 *
 * To use data often before it leaves the cache, B is divided into panels of DEPTH rows by WIDTH
 * columns, each copied to contiguous memory (32 KiB, in the first-level cache), and all rows of A
 * are multiplied by one panel before the next. The sums of WIDTH elements of C stay in registers
 * for DEPTH terms.
 *
 *              panel of B              for each row i of A:
 *               | | | |                  high[i][0..15], low[i][0..15] += a[i][l] * panel[l][0..15]
 *   row of A    | | | |   DEPTH                                          for l = 0 .. DEPTH-1
 *   ---------   | | | |
 *
 * Cost: eight operations a term (two in an ordinary product), see sums.c.
 */
#include "cannon.h"
#include <string.h>

enum { DEPTH = 256, WIDTH = SUMS_AT_A_TIME };

struct panel {
    double element[DEPTH][WIDTH];
};

static void copy_panel(struct panel *panel, const double *b, int columns, int width, int depth)
{
    memset(panel, 0, sizeof *panel);
    for (int l = 0; l < depth; l++)
        memcpy(panel->element[l], b + (size_t)l * columns, sizeof *b * (size_t)width);
}

/* One row of A by a panel of B. The compiler vectorizes the inner loop. */
static inline __attribute__((always_inline)) void add_row(const double *restrict a,
                                                          const struct panel *restrict panel,
                                                          int depth, double coarse, double fine,
                                                          double *restrict high_sums,
                                                          double *restrict low_sums)
{
    double high[WIDTH], low[WIDTH];
    memcpy(high, high_sums, sizeof high);
    memcpy(low, low_sums, sizeof low);
    for (int l = 0; l < depth; l++)
        for (int i = 0; i < WIDTH; i++) {
            const double term = a[l] * panel->element[l][i];
            const double high_piece = (term + coarse) - coarse;
            const double rest = term - high_piece;
            const double low_piece = (rest + fine) - fine;
            high[i] += high_piece;
            low[i] += low_piece;
        }
    memcpy(high_sums, high, sizeof high);
    memcpy(low_sums, low, sizeof low);
}

typedef void add_rows_function(const double *a, int inner, const struct panel *panel, int depth,
                               const struct sums *sums, int column);

static inline __attribute__((always_inline)) void add_rows(const double *a, int inner,
                                                           const struct panel *panel, int depth,
                                                           const struct sums *sums, int column)
{
    const double coarse = sums->coarse, fine = sums->fine;
    for (int row = 0; row < sums->rows; row++) {
        const size_t place = (size_t)row * sums->stride + column;
        add_row(a + (size_t)row * inner, panel, depth, coarse, fine, sums->high + place,
                sums->low + place);
    }
}

static void add_rows_anywhere(const double *a, int inner, const struct panel *panel, int depth,
                              const struct sums *sums, int column)
{
    add_rows(a, inner, panel, depth, sums, column);
}

/* The same operations, hence the same bits, twice as many at once. (AVX2 alone does not fuse a
 * multiplication and an addition, which would round differently.) */
#ifdef __x86_64__
__attribute__((target("avx2"))) static void add_rows_avx2(const double *a, int inner,
                                                          const struct panel *panel, int depth,
                                                          const struct sums *sums, int column)
{
    add_rows(a, inner, panel, depth, sums, column);
}
#endif

static add_rows_function *fastest(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return add_rows_avx2;
#endif
    return add_rows_anywhere;
}

void add_product(const struct sums *sums, const double *a, const double *b, int inner)
{
    struct panel panel;
    add_rows_function *const add = fastest();
    for (int first = 0; first < inner; first += DEPTH) {
        const int depth = inner - first < DEPTH ? inner - first : DEPTH;
        for (int column = 0; column < sums->columns; column += WIDTH) {
            const int left = sums->columns - column, width = left < WIDTH ? left : WIDTH;
            copy_panel(&panel, b + (size_t)first * sums->columns + column, sums->columns, width,
                       depth);
            add(a + first, inner, &panel, depth, sums, column);
        }
    }
}
