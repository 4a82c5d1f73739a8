/* The operations that reductions are tested with, on all the ints in an element of a datatype.
 * mpilab/cases/data.py computes their results independently.
 *
 *   sum       of the ints, modulo 2^32; MPI_SUM itself for the datatype int
 *   compose   does not commute: an int stands for the map x -> a x + b modulo 2^16, with a in its
 *             lower half (and odd, so that no map loses information) and b in its upper one
 */
#include "harness.h"
#include <stdint.h>
#include <string.h>

/* Where the ints of an element are. The datatypes that can be reduced differ in their extents. */
struct ints {
    MPI_Aint extent;
    int count;
    MPI_Aint place[6];
};
static const struct ints known[] = {
    {4, 1, {0}},                    /* int */
    {12, 3, {0, 4, 8}},             /* contiguous */
    {32, 6, {0, 4, 8, 20, 24, 28}}, /* vector */
    {16, 1, {8}},                   /* shifted */
    {28, 1, {12}},                  /* raised */
    {20, 3, {0, -8, -16}},          /* backward */
};

typedef uint32_t combine(uint32_t left, uint32_t right);

static uint32_t add(uint32_t left, uint32_t right)
{
    return left + right;
}

static uint32_t compose(uint32_t left, uint32_t right)
{
    const uint32_t left_factor = (left & 0xffff) | 1, left_shift = left >> 16;
    const uint32_t right_factor = (right & 0xffff) | 1, right_shift = right >> 16;
    const uint32_t factor = left_factor * right_factor;
    const uint32_t shift = left_factor * right_shift + left_shift;
    return (factor & 0xffff) | (shift << 16);
}

static void on_all_ints(const char *in, char *inout, int count, MPI_Datatype type, combine *with)
{
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    const struct ints *ints = known;
    while (ints->extent != extent)
        if (++ints == known + sizeof known / sizeof *known)
            MPI_Abort(MPI_COMM_WORLD, MPI_ERR_TYPE);
    for (int element = 0; element < count; element++, in += extent, inout += extent)
        for (int i = 0; i < ints->count; i++) {
            uint32_t left, right;
            memcpy(&left, in + ints->place[i], sizeof left);
            memcpy(&right, inout + ints->place[i], sizeof right);
            right = with(left, right);
            memcpy(inout + ints->place[i], &right, sizeof right);
        }
}

static void add_all(void *in, void *inout, int *count, MPI_Datatype *type)
{
    on_all_ints(in, inout, *count, *type, add);
}

static void compose_all(void *in, void *inout, int *count, MPI_Datatype *type)
{
    on_all_ints(in, inout, *count, *type, compose);
}

int make_operation(const char *name, const char *datatype, MPI_Op *op)
{
    const int is_sum = strcmp(name, "sum") == 0;
    *op = MPI_SUM;
    if (is_sum && strcmp(datatype, "int") == 0)
        return 0;
    if (!is_sum && strcmp(name, "compose") != 0)
        return harness_fail("op=%s: unknown; sum and compose are known", name);
    if (MPI_Op_create(is_sum ? add_all : compose_all, is_sum, op) != MPI_SUCCESS)
        return harness_fail("op=%s: MPI_Op_create failed", name);
    return 0;
}

void free_operation(MPI_Op *op)
{
    if (*op != MPI_SUM && *op != MPI_OP_NULL)
        MPI_Op_free(op);
}
