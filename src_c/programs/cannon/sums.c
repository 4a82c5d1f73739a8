/* Sums that do not depend on the order of their terms.
 *
 * In Cannon's algorithm each rank begins with a different block, so the terms a(i,l) b(l,j) of an
 * element come in a different order on every rank and on every grid, and ordinary sums of doubles
 * would differ in their last bits. Here no sum is ever rounded: rounding to two fixed grids cuts
 * each term into a high piece and a low piece, and pieces of one grid add up exactly, because they
 * are multiples of one number and never need more than 53 bits. What is below the second grid is
 * dropped from each term separately. So the file of C is identical, byte for byte, for every grid
 * of ranks.
 *
 *   term    .110100100111010010101110...     |term| < 1, see scale.c
 *           |---- high ----||---- low ----|  dropped
 *                     2^(L-53)      2^(2L-107)      L = ceil(log2 terms), at least 2
 *
 * Rounding x to multiples of g is (x + s) - s with s = 1.5 * 2^52 * g: s + x has the last bit g.
 *
 * Error of an element with n terms: n 2^-53 max |a b| from rounding the products, as in any loop,
 * 2^(3L-108) max |a(i,.)| max |b(.,j)| from what is dropped (L = 12 for 4096: 2^-72), and one
 * rounding at the end. An ordinary sum has n 2^-53 sum |a b| in place of the last two. Integers are
 * multiplied exactly as long as the largest of a row of A and the largest of a column of B together
 * have at most 107 - 2L bits (L = 12: 83), and each product and the sum at most 53.
 *
 * Source: Demmel and Nguyen (2013), "Fast reproducible floating-point summation", ARITH 21: their
 * pre-rounding with K = 2 folds, on grids that do not depend on the running sum.
 */
#include "cannon.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

_Static_assert(FLT_EVAL_METHOD == 0, "doubles have to be rounded to doubles after each operation");

static int log2_of(int terms)
{
    int log2 = 2;
    while (log2 < 31 && terms > (int64_t)1 << log2)
        log2++;
    return log2;
}

void make_sums(struct sums *sums, int rows, int columns, int inner)
{
    const int log2 = log2_of(inner);
    sums->rows = rows;
    sums->columns = columns;
    sums->stride = (columns + SUMS_AT_A_TIME - 1) / SUMS_AT_A_TIME * SUMS_AT_A_TIME;
    sums->coarse = ldexp(1.5, log2 - 1);    /* 1.5 * 2^52 * 2^(L-53) */
    sums->fine = ldexp(1.5, 2 * log2 - 55); /* 1.5 * 2^52 * 2^(2L-107) */
    const size_t count = (size_t)rows * (size_t)sums->stride;
    sums->high = need_memory(count, sizeof(double), "the sums");
    sums->low = need_memory(count, sizeof(double), "the sums");
}

void free_sums(struct sums *sums)
{
    free(sums->high);
    free(sums->low);
}

void round_sums(const struct sums *sums, const int row_exponents[], const int column_exponents[],
                double *c)
{
    for (int row = 0; row < sums->rows; row++)
        for (int column = 0; column < sums->columns; column++) {
            const size_t place = (size_t)row * sums->stride + column;
            const double high = sums->high[place];
            /* An infinite high piece has no low piece. */
            const double sum = isfinite(high) ? high + sums->low[place] : high;
            const int exponent = row_exponents[row] + column_exponents[column];
            /* NaN has many bit patterns; which of them results would depend on the order. */
            c[(size_t)row * sums->columns + column] = isnan(sum) ? NAN : ldexp(sum, exponent);
        }
}
