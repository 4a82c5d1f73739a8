/* Derived datatypes whose second element is where MPI says.
 *
 * From one element to the next, SMPI 3.32 goes from the beginning of a type to the end of its last
 * block, and looks there for the first block, wherever that is in the type
 * (Type_Hindexed::serialize and similar functions). It also forgets that the elements of a block may
 * have a lower bound. So bounds are computed here (MPI-4.1, section 5.1), and each type is wrapped in
 * one that begins and ends with an empty block. What is not done: in a struct of resized and other
 * types, only the bounds of the resized ones should count. */
#include "simulated.h"
#undef PMPI_Type_contiguous
#undef PMPI_Type_create_hvector
#undef PMPI_Type_create_hindexed
#undef PMPI_Type_create_struct
#undef PMPI_Type_dup

int simulated_is_derived(MPI_Datatype datatype)
{
    int numbers, addresses, types, combiner = MPI_COMBINER_NAMED;
    PMPI_Type_get_envelope(datatype, &numbers, &addresses, &types, &combiner);
    return combiner != MPI_COMBINER_NAMED;
}

/* Sums, differences and products may overflow, as in MPI itself; the jail's shim refuses to use such
 * a type. */
static MPI_Aint sum(MPI_Aint one, MPI_Aint other)
{
    return (MPI_Aint)((uint64_t)one + (uint64_t)other);
}

static MPI_Aint product(MPI_Aint one, MPI_Aint other)
{
    return (MPI_Aint)((uint64_t)one * (uint64_t)other);
}

int simulated_type_create_resized(MPI_Datatype of, MPI_Aint lower_bound, MPI_Aint extent,
                                  MPI_Datatype *type)
{
    const int lengths[] = {1, 1, 1, 0};
    const MPI_Aint places[] = {lower_bound, 0, sum(lower_bound, extent), extent};
    const MPI_Datatype parts[] = {MPI_LB, of, MPI_UB, MPI_BYTE};
    return PMPI_Type_create_struct(4, lengths, places, parts, type);
}

/* How far the blocks of a type reach; nothing if there are none. */
struct bounds {
    MPI_Aint low, high;
    int is_any;
};

/* Add an element that begins at `place`. */
static void add(struct bounds *bounds, MPI_Aint place, MPI_Aint lower_bound, MPI_Aint extent)
{
    const MPI_Aint low = sum(place, lower_bound), high = sum(low, extent);
    if (!bounds->is_any || low < bounds->low)
        bounds->low = low;
    if (!bounds->is_any || high > bounds->high)
        bounds->high = high;
    bounds->is_any = 1;
}

/* Add a block of `length` elements that begins at `place`. */
static void add_block(struct bounds *bounds, MPI_Aint place, int length, MPI_Datatype of)
{
    MPI_Aint lower_bound, extent;
    if (length <= 0 || PMPI_Type_get_extent(of, &lower_bound, &extent) != MPI_SUCCESS)
        return;
    add(bounds, place, lower_bound, extent);
    add(bounds, sum(place, product(length - 1, extent)), lower_bound, extent);
}

/* Give a type that SMPI has made its bounds. */
static int within(const struct bounds *bounds, int err, MPI_Datatype *type)
{
    if (err != MPI_SUCCESS)
        return err;
    MPI_Datatype unbounded = *type;
    const MPI_Aint extent = (MPI_Aint)((uint64_t)bounds->high - (uint64_t)bounds->low);
    err = simulated_type_create_resized(unbounded, bounds->low, extent, type);
    PMPI_Type_free(&unbounded);
    return err;
}

/* 0 for the null handle, which the constructors then refuse. */
static MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint lower_bound, extent = 0;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_get_extent(type, &lower_bound, &extent);
    return extent;
}

int simulated_type_contiguous(int count, MPI_Datatype of, MPI_Datatype *type)
{
    struct bounds bounds = {0};
    const int err = PMPI_Type_contiguous(count, of, type);
    if (err != MPI_SUCCESS || !simulated_is_derived(of))
        return err;
    add_block(&bounds, 0, count, of);
    return within(&bounds, err, type);
}

int simulated_type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype of,
                                  MPI_Datatype *type)
{
    struct bounds bounds = {0};
    const int err = PMPI_Type_create_hvector(count, length, stride, of, type);
    if (err == MPI_SUCCESS && count > 0) {
        add_block(&bounds, 0, length, of);
        add_block(&bounds, product(count - 1, stride), length, of);
    }
    return within(&bounds, err, type);
}

int simulated_type_vector(int count, int length, int stride, MPI_Datatype of, MPI_Datatype *type)
{
    return simulated_type_create_hvector(count, length, product(stride, extent_of(of)), of, type);
}

int simulated_type_create_hindexed(int count, const int lengths[], const MPI_Aint displs[],
                                   MPI_Datatype of, MPI_Datatype *type)
{
    struct bounds bounds = {0};
    const int err = PMPI_Type_create_hindexed(count, lengths, displs, of, type);
    for (int i = 0; err == MPI_SUCCESS && i < count; i++)
        add_block(&bounds, displs[i], lengths[i], of);
    return within(&bounds, err, type);
}

int simulated_type_create_struct(int count, const int lengths[], const MPI_Aint displs[],
                                 const MPI_Datatype of[], MPI_Datatype *type)
{
    struct bounds bounds = {0};
    const int err = PMPI_Type_create_struct(count, lengths, displs, of, type);
    for (int i = 0; err == MPI_SUCCESS && i < count; i++)
        add_block(&bounds, displs[i], lengths[i], of[i]);
    return within(&bounds, err, type);
}

/* The arguments of MPI_Type_create_hindexed, which the caller frees: `count` times the same length,
 * and displacements in bytes. NULL if there is no memory. */
static int *same_lengths(int count, int length)
{
    int *const all = malloc((size_t)(count > 0 ? count : 1) * sizeof *all);
    for (int i = 0; all != NULL && i < count; i++)
        all[i] = length;
    return all;
}

static MPI_Aint *in_bytes(int count, const int displs[], MPI_Datatype of)
{
    const MPI_Aint extent = extent_of(of);
    MPI_Aint *const all = malloc((size_t)(count > 0 ? count : 1) * sizeof *all);
    for (int i = 0; all != NULL && i < count; i++)
        all[i] = product(displs[i], extent);
    return all;
}

int simulated_type_indexed(int count, const int lengths[], const int displs[], MPI_Datatype of,
                           MPI_Datatype *type)
{
    MPI_Aint *const places = in_bytes(count, displs, of);
    if (places == NULL)
        return MPI_ERR_NO_MEM;
    const int err = simulated_type_create_hindexed(count, lengths, places, of, type);
    free(places);
    return err;
}

/* SMPI allocates as many lengths as the blocks have elements, and writes one for each block. */
int simulated_type_create_hindexed_block(int count, int length, const MPI_Aint displs[],
                                         MPI_Datatype of, MPI_Datatype *type)
{
    int *const lengths = same_lengths(count, length);
    if (lengths == NULL)
        return MPI_ERR_NO_MEM;
    const int err = simulated_type_create_hindexed(count, lengths, displs, of, type);
    free(lengths);
    return err;
}

int simulated_type_create_indexed_block(int count, int length, const int displs[], MPI_Datatype of,
                                        MPI_Datatype *type)
{
    MPI_Aint *const places = in_bytes(count, displs, of);
    if (places == NULL)
        return MPI_ERR_NO_MEM;
    const int err = simulated_type_create_hindexed_block(count, length, places, of, type);
    free(places);
    return err;
}

/* SMPI takes strides in bytes for strides in elements. */
int simulated_type_dup(MPI_Datatype of, MPI_Datatype *type)
{
    if (!simulated_is_derived(of))
        return PMPI_Type_dup(of, type);
    MPI_Aint lower_bound, extent;
    int err = PMPI_Type_get_extent(of, &lower_bound, &extent);
    if (err == MPI_SUCCESS)
        err = simulated_type_create_resized(of, lower_bound, extent, type);
    return err == MPI_SUCCESS ? PMPI_Type_commit(type) : err;
}
