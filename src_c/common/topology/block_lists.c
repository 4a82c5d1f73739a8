/* Messages of blocks at any positions in a buffer. */
#include "block_lists.h"
#include <limits.h>
#include <stdlib.h>

/* A struct of single blocks: MPI merges those of consecutive ranks. (With some of the other
 * constructors, SimGrid 3.32 ignores a type's holes; see two_runs_type.) */
static int make_struct(const int *rank, int ranks, MPI_Aint stride, MPI_Datatype one, int *lengths,
                       MPI_Aint *places, MPI_Datatype *types, MPI_Datatype *list)
{
    for (int i = 0; i < ranks; i++) {
        lengths[i] = 1;
        places[i] = rank[i] * stride;
        types[i] = one;
    }
    return MPI_Type_create_struct(ranks, lengths, places, types, list);
}

int mpilab_list_type(const int *rank, int ranks, int count, MPI_Datatype type, MPI_Datatype *list)
{
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    const MPI_Aint stride = count * extent;
    const size_t entries = (size_t)ranks + 1;
    int *lengths = malloc(entries * sizeof *lengths);
    MPI_Aint *places = malloc(entries * sizeof *places);
    MPI_Datatype *types = malloc(entries * sizeof *types);
    MPI_Datatype one = MPI_DATATYPE_NULL;

    int err = MPI_ERR_NO_MEM;
    if (lengths != NULL && places != NULL && types != NULL)
        err = MPI_Type_create_hvector(1, count, stride, type, &one);
    if (err == MPI_SUCCESS)
        err = make_struct(rank, ranks, stride, one, lengths, places, types, list);
    if (err == MPI_SUCCESS)
        err = MPI_Type_commit(list);
    if (one != MPI_DATATYPE_NULL)
        MPI_Type_free(&one);
    free(lengths);
    free(places);
    free(types);
    return err;
}

/* Can these blocks be described by a count of elements? If not, they need a datatype. */
static int is_plain(const int *rank, int ranks, int count)
{
    for (int i = 1; i < ranks; i++)
        if (rank[i] != rank[i - 1] + 1)
            return 0;
    return ranks > 0 && (long long)ranks * count <= INT_MAX;
}

int mpilab_isend_list(const void *buffer, const int *rank, int ranks, int count, MPI_Datatype type,
                      int dest, MPI_Comm comm, MPI_Request *request)
{
    if (is_plain(rank, ranks, count))
        return MPI_Isend(block(buffer, rank[0], count, type), ranks * count, type, dest, TAG, comm,
                         request);
    MPI_Datatype list;
    int err = mpilab_list_type(rank, ranks, count, type, &list);
    if (err == MPI_SUCCESS) {
        err = MPI_Isend(buffer, 1, list, dest, TAG, comm, request);
        MPI_Type_free(&list);
    }
    return err;
}

int mpilab_irecv_list(void *buffer, const int *rank, int ranks, int count, MPI_Datatype type,
                      int source, MPI_Comm comm, MPI_Request *request)
{
    if (is_plain(rank, ranks, count))
        return MPI_Irecv(block(buffer, rank[0], count, type), ranks * count, type, source, TAG,
                         comm, request);
    MPI_Datatype list;
    int err = mpilab_list_type(rank, ranks, count, type, &list);
    if (err == MPI_SUCCESS) {
        err = MPI_Irecv(buffer, 1, list, source, TAG, comm, request);
        MPI_Type_free(&list);
    }
    return err;
}
