/* Powers of two that bring every element below 1.
 *
 * Each row of A, over all ranks that hold a piece of it, is divided by the power of two just above
 * its largest element; so is each column of B. Dividing by a power of two is exact (except for
 * elements some 300 orders of magnitude below the largest). So all products have the same known
 * bound on every rank: 1.
 *
 * Infinities and NaN are ignored here, and stay what they are.
 */
#include "cannon.h"
#include <math.h>

enum { NONE = -10000 }; /* all are 0: below the exponent of any double */

/* For elements `stride` apart: 2 to this power is above each of them. */
static int exponent_of(const double *first, int count, int stride)
{
    double largest = 0;
    for (int i = 0; i < count; i++) {
        const double size = fabs(first[(size_t)i * stride]);
        if (size > largest && isfinite(size))
            largest = size;
    }
    int exponent = NONE;
    if (largest > 0)
        frexp(largest, &exponent);
    return exponent;
}

static void agree_on_largest(MPI_Comm comm, int exponents[], int count)
{
    MPI_Allreduce(MPI_IN_PLACE, exponents, count, MPI_INT, MPI_MAX, comm);
    for (int i = 0; i < count; i++)
        if (exponents[i] == NONE)
            exponents[i] = 0;
}

void scale_rows(MPI_Comm in_row, double *block, int rows, int columns, int exponents[])
{
    for (int row = 0; row < rows; row++)
        exponents[row] = exponent_of(block + (size_t)row * columns, columns, 1);
    agree_on_largest(in_row, exponents, rows);
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++) {
            double *element = block + (size_t)row * columns + column;
            *element = ldexp(*element, -exponents[row]);
        }
}

void scale_columns(MPI_Comm in_column, double *block, int rows, int columns, int exponents[])
{
    for (int column = 0; column < columns; column++)
        exponents[column] = exponent_of(block + column, rows, columns);
    agree_on_largest(in_column, exponents, columns);
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++) {
            double *element = block + (size_t)row * columns + column;
            *element = ldexp(*element, -exponents[column]);
        }
}
