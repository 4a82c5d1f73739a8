/* The datatypes that kernels are tested with. mpilab/cases/data.py defines their layouts
 * independently, so the comparison does not rely on MPI. */
#include "harness.h"
#include <stddef.h>
#include <string.h>

struct particle {
    char kind;
    double mass;
    int charge;
};
_Static_assert(offsetof(struct particle, mass) == 8 && offsetof(struct particle, charge) == 16 &&
                   sizeof(struct particle) == 24,
               "datatypes.py relies on the layout");

/* Six ints in two runs of three, with two ints between them and none at the end: extent 8 ints. */
static int make_vector(MPI_Datatype *type)
{
    return MPI_Type_vector(2, 3, 5, MPI_INT, type);
}

/* A struct with holes between its members and after the last one. */
static int make_struct(MPI_Datatype *type)
{
    const int lengths[] = {1, 1, 1};
    const MPI_Aint places[] = {offsetof(struct particle, kind), offsetof(struct particle, mass),
                               offsetof(struct particle, charge)};
    const MPI_Datatype members[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    MPI_Datatype packed;
    int err = MPI_Type_create_struct(3, lengths, places, members, &packed);
    if (err == MPI_SUCCESS) {
        err = MPI_Type_create_resized(packed, 0, sizeof(struct particle), type);
        MPI_Type_free(&packed);
    }
    return err;
}

/* One int 8 bytes after the element's address: a true lower bound above 0. */
static int make_shifted(MPI_Datatype *type)
{
    MPI_Datatype displaced;
    int err = MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){8}, MPI_INT, &displaced);
    if (err == MPI_SUCCESS) {
        err = MPI_Type_create_resized(displaced, 0, 16, type);
        MPI_Type_free(&displaced);
    }
    return err;
}

/* One int 12 bytes after the element's address, in an extent that begins at 8: a lower bound. */
static int make_raised(MPI_Datatype *type)
{
    MPI_Datatype displaced;
    int err = MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){12}, MPI_INT, &displaced);
    if (err == MPI_SUCCESS) {
        err = MPI_Type_create_resized(displaced, 8, 28, type);
        MPI_Type_free(&displaced);
    }
    return err;
}

/* Three ints from the last to the first, with an int between them: the lower bound is below 0. */
static int make_backward(MPI_Datatype *type)
{
    MPI_Datatype vector;
    int err = MPI_Type_vector(3, 1, -2, MPI_INT, &vector);
    if (err == MPI_SUCCESS) {
        /* The bounds that it has, except in SMPI. */
        err = MPI_Type_create_resized(vector, -16, 20, type);
        MPI_Type_free(&vector);
    }
    return err;
}

static int make_one(const char *name, MPI_Datatype *type)
{
    if (strcmp(name, "int") == 0)
        return *type = MPI_INT, MPI_SUCCESS;
    if (strcmp(name, "double") == 0)
        return *type = MPI_DOUBLE, MPI_SUCCESS;
    if (strcmp(name, "byte") == 0)
        return *type = MPI_BYTE, MPI_SUCCESS;
    if (strcmp(name, "contiguous") == 0)
        return MPI_Type_contiguous(3, MPI_INT, type);
    if (strcmp(name, "vector") == 0)
        return make_vector(type);
    if (strcmp(name, "struct") == 0)
        return make_struct(type);
    if (strcmp(name, "shifted") == 0)
        return make_shifted(type);
    if (strcmp(name, "raised") == 0)
        return make_raised(type);
    if (strcmp(name, "backward") == 0)
        return make_backward(type);
    harness_fail("datatype=%s: unknown; byte, int, double, contiguous, vector, struct, shifted, "
                 "raised, backward and mixed are known",
                 name);
    return MPI_ERR_TYPE;
}

int make_datatypes(const char *name, struct datatype_pair *pair)
{
    /* "mixed" sends six single ints for each vector received: same signature, different layout. */
    const int mixed = strcmp(name, "mixed") == 0;
    pair->send_per_receive = mixed ? 6 : 1;
    if (make_one(mixed ? "int" : name, &pair->send) != MPI_SUCCESS ||
        make_one(mixed ? "vector" : name, &pair->receive) != MPI_SUCCESS)
        return 1;
    MPI_Type_commit(&pair->send);
    MPI_Type_commit(&pair->receive);
    return 0;
}

static void free_one(MPI_Datatype *type)
{
    if (*type != MPI_INT && *type != MPI_BYTE && *type != MPI_DOUBLE)
        MPI_Type_free(type);
}

void free_datatypes(struct datatype_pair *pair)
{
    free_one(&pair->send);
    free_one(&pair->receive);
}
