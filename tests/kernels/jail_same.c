/* What a kernel may do with datatypes, operations and attributes: part `sendcount - 64` of all of it.
 * The receive buffer, of ints, holds what came of it: natively and in the jail the same. */
#include "mpilab.h"
#include <string.h>

enum { SHOWN = 64 };
static int from[1024], to[1024];
static int deletions;

static int count_deletion(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key;
    deletions += *(int *)value + *(int *)extra;
    return MPI_SUCCESS;
}

/* Copies even values only, to the element behind. */
static int copy_even(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key;
    *flag = *(int *)value % *(int *)extra == 0;
    if (*flag)
        *(int **)copy = (int *)value + 1;
    return MPI_SUCCESS;
}

/* a o b = 2 a + b + 1: neither commutative nor anything that MPI has. */
static void affine(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int size;
    MPI_Type_size(*type, &size);
    for (int i = 0; i < *count * (size / (int)sizeof(int)); i++)
        ((int *)inout)[i] = 2 * ((int *)in)[i] + ((int *)inout)[i] + 1;
}

static MPI_Datatype type_of(int which)
{
    MPI_Datatype type, inner;
    const int lengths[] = {2, 0, 3}, places[] = {4, 9, 20};
    const MPI_Aint far[] = {40, 0, 100};
    switch (which) {
    case 0: MPI_Type_contiguous(7, MPI_INT, &type); break;
    case 1: MPI_Type_vector(3, 2, 5, MPI_INT, &type); break;
    case 2: MPI_Type_vector(3, 2, -5, MPI_INT, &type); break;
    case 3: MPI_Type_create_hvector(3, 1, 12, MPI_INT, &type); break;
    case 4: MPI_Type_indexed(3, lengths, places, MPI_INT, &type); break;
    case 5: MPI_Type_create_hindexed(3, lengths, far, MPI_INT, &type); break;
    case 6: MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &type); break;
    case 7: MPI_Type_create_hindexed_block(3, 2, far, MPI_INT, &type); break;
    case 8:
        MPI_Type_create_struct(3, lengths, far, (MPI_Datatype[]){MPI_INT, MPI_CHAR, MPI_DOUBLE},
                               &type);
        break;
    case 9: MPI_Type_create_resized(MPI_INT, -8, 16, &type); break;
    case 10:
        MPI_Type_create_subarray(2, (int[]){4, 6}, (int[]){2, 3}, (int[]){1, 2}, MPI_ORDER_C,
                                 MPI_INT, &type);
        break;
    case 11:
        MPI_Type_create_darray(4, 1, 2, (int[]){4, 6},
                               (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                               (int[]){MPI_DISTRIBUTE_DFLT_DARG, 1}, (int[]){2, 2}, MPI_ORDER_C,
                               MPI_INT, &type);
        break;
    case 12: MPI_Type_dup(MPI_DOUBLE, &type); break;
    default:
        MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
        MPI_Type_create_hvector(2, 2, 64, inner, &type);
        MPI_Type_free(&inner);
    }
    MPI_Type_commit(&type);
    return type;
}

static void move(int which, int rank, int size, MPI_Comm comm)
{
    MPI_Datatype type = type_of(which);
    MPI_Aint low, extent, true_low, true_extent;
    MPI_Status status;
    int bytes, count, elements, packed = 0, at = 0;
    char pack[512];
    /* From the middle of an array to that of another one: some types reach to both sides. */
    MPI_Sendrecv(from + 512, 2, type, (rank + 1) % size, 5, to + 512, 3, type,
                 (rank + size - 1) % size, 5, comm, &status);
    MPI_Type_size(type, &bytes);
    MPI_Type_get_extent(type, &low, &extent);
    MPI_Type_get_true_extent(type, &true_low, &true_extent);
    MPI_Get_count(&status, type, &count);
    MPI_Get_elements(&status, type, &elements);
    MPI_Pack(from + 512, 1, type, pack, sizeof pack, &packed, comm);
    MPI_Unpack(pack, packed, &at, to + 768, 1, type, comm);
    const int shown[] = {bytes, (int)low, (int)extent, (int)true_low, (int)true_extent,
                         count, elements, packed, at};
    memcpy(to, shown, sizeof shown);
    MPI_Type_free(&type);
}

static void reduce(int rank, int size, MPI_Comm comm)
{
    MPI_Op op;
    MPI_Datatype pair;
    MPI_Request request;
    const int counts[] = {2, 1, 3, 2};
    MPI_Op_create(affine, 0, &op);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Allreduce(from, to, 4, MPI_INT, op, comm);
    MPI_Reduce(from, to + 4, 2, pair, op, size - 1, comm);
    MPI_Scan(from, to + 8, 2, pair, op, comm);
    MPI_Exscan(from, to + 12, 4, MPI_INT, op, comm);
    MPI_Reduce_scatter(from, to + 16, counts, MPI_INT, op, comm);
    MPI_Reduce_scatter_block(from, to + 20, 4, MPI_INT, op, comm);
    memcpy(to + 24, from, 4 * sizeof *to);
    MPI_Allreduce(MPI_IN_PLACE, to + 24, 4, MPI_INT, op, comm);
    MPI_Iallreduce(from, to + 28, 4, MPI_INT, op, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(from, to + 32, 4, MPI_INT, MPI_MAX, comm);
    memcpy(to + 36, from, 8 * sizeof *to);
    if (rank == 0)
        MPI_Reduce(MPI_IN_PLACE, to + 36, 4, MPI_INT, MPI_SUM, 0, comm);
    else
        MPI_Reduce(to + 36, NULL, 4, MPI_INT, MPI_SUM, 0, comm);
    MPI_Reduce_local(from, to + 40, 2, pair, op);
    MPI_Op_commutative(op, to + 44);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
}

static void keep(int rank, MPI_Comm comm)
{
    static int value = 3, extra = 100;
    int key, flag = 7, *found = NULL;
    MPI_Comm twin, again;
    deletions = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_deletion, &key, &extra);
    MPI_Comm_dup(comm, &twin);
    MPI_Comm_get_attr(twin, key, &found, &flag);
    to[0] = flag;
    MPI_Comm_set_attr(twin, key, &value);
    MPI_Comm_get_attr(twin, key, &found, &flag);
    to[1] = flag, to[2] = found == &value;
    MPI_Comm_dup(twin, &again);
    MPI_Comm_get_attr(again, key, &found, &flag);
    to[3] = flag;
    MPI_Comm_set_attr(twin, key, &value);
    to[4] = deletions;
    MPI_Comm_delete_attr(twin, key);
    to[5] = deletions;
    MPI_Comm_set_attr(again, key, &value);
    MPI_Comm_free_keyval(&key);
    to[6] = key == MPI_KEYVAL_INVALID;
    MPI_Comm_free(&again);
    to[7] = deletions, to[8] = rank;

    static int values[] = {4, 5, 6}, two = 2;
    int keys[2];
    MPI_Comm_create_keyval(copy_even, MPI_COMM_NULL_DELETE_FN, &keys[0], &two);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keys[1], NULL);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_set_attr(twin, keys[0], &values[i]);
        MPI_Comm_set_attr(twin, keys[1], &values[i]);
        MPI_Comm_dup(twin, &again);
        for (int k = 0; k < 2; k++) {
            int *got = NULL;
            MPI_Comm_get_attr(again, keys[k], &got, &flag);
            to[9 + 4 * i + 2 * k] = flag;
            to[10 + 4 * i + 2 * k] = flag ? *got : -1;
        }
        MPI_Comm_free(&again);
    }
    MPI_Comm_free_keyval(&keys[0]);
    MPI_Comm_free_keyval(&keys[1]);
    MPI_Comm_free(&twin);
}

static void exchange(int rank, int size, MPI_Comm comm)
{
    int counts[8], places[8], bytes[8];
    MPI_Datatype types[8];
    for (int i = 0; i < size; i++)
        counts[i] = 1 + (i + rank) % 2, places[i] = 3 * i, bytes[i] = 12 * i, types[i] = MPI_INT;
    MPI_Alltoall(from, 2, MPI_INT, to, 2, MPI_INT, comm);
    MPI_Alltoallv(from, counts, places, MPI_INT, to + 8, counts, places, MPI_INT, comm);
    MPI_Alltoallw(from, counts, bytes, types, to + 20, counts, bytes, types, comm);
    for (int i = 0; i < size; i++)
        counts[i] = 1 + i % 2;
    MPI_Allgatherv(from, counts[rank], MPI_INT, to + 32, counts, places, MPI_INT, comm);
    MPI_Gatherv(from, counts[rank], MPI_INT, to + 44, counts, places, MPI_INT, 1, comm);
    MPI_Scatterv(from, counts, places, MPI_INT, to + 56, counts[rank], MPI_INT, 1, comm);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, 2, MPI_INT, comm);
    if (rank == 0)
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to + 44, 1, MPI_INT, 0, comm);
    else
        MPI_Gather(to + 50, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, comm);
    if (rank == 0)
        MPI_Scatter(to + 44, 1, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, comm);
    else
        MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, to + 62, 1, MPI_INT, 0, comm);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, to + 8, 2, MPI_INT, MPI_SUM, comm);
}

static void group(int rank, int size, MPI_Comm comm)
{
    MPI_Group all, some, rest;
    MPI_Comm part;
    int ranks[8], ranges[][3] = {{0, size - 1, 2}};
    for (int i = 0; i < size; i++)
        ranks[i] = size - 1 - i;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, size - 1, ranks, &some);
    MPI_Group_translate_ranks(all, size, ranks, some, to);
    MPI_Group_range_incl(all, 1, ranges, &rest);
    MPI_Group_size(rest, &to[10]);
    MPI_Comm_create(comm, some, &part);
    to[11] = part == MPI_COMM_NULL;
    if (part != MPI_COMM_NULL) {
        MPI_Comm_rank(part, &to[12]);
        MPI_Allgather(&rank, 1, MPI_INT, to + 20, 1, MPI_INT, part);
        MPI_Comm_free(&part);
    }
    MPI_Comm_split(comm, rank % 2, -rank, &part);
    MPI_Comm_size(part, &to[13]);
    MPI_Comm_rank(part, &to[14]);
    MPI_Comm_free(&part);
    MPI_Group_free(&rest);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

static void wait(int rank, int size, MPI_Comm comm)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int indices[4], done = 0, some;
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 0; i < 2; i++) {
        MPI_Recv_init(to + 8 * i, 4, MPI_INT, left, i, comm, &requests[i]);
        MPI_Send_init(from + 8 * i, 3 + i, MPI_INT, right, i, comm, &requests[2 + i]);
    }
    MPI_Startall(4, requests);
    while (done < 4) {
        MPI_Waitsome(4, requests, &some, indices, statuses);
        for (int i = 0; i < some; i++, done++)
            if (indices[i] < 2) {
                MPI_Get_count(&statuses[i], MPI_INT, &to[20 + indices[i]]);
                to[24 + indices[i]] = statuses[i].MPI_SOURCE, to[28 + indices[i]] = statuses[i].MPI_TAG;
            }
    }
    for (int i = 0; i < 4; i++)
        MPI_Request_free(&requests[i]);
    MPI_Isend(from, 5, MPI_INT, right, 7, comm, &requests[0]);
    MPI_Probe(left, MPI_ANY_TAG, comm, &statuses[0]);
    MPI_Get_count(&statuses[0], MPI_INT, &to[32]);
    MPI_Recv(to + 40, to[32], MPI_INT, left, 7, comm, &statuses[0]);
    MPI_Waitall(1, requests, statuses);
}

MPILAB_ALLGATHER(same)
{
    int rank, size;
    (void)sendbuf, (void)sendtype, (void)recvcount, (void)recvtype;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 1024; i++)
        from[i] = 1000 * rank + i, to[i] = -1;
    const int part = sendcount - SHOWN;
    if (part < 14)
        move(part, rank, size, comm);
    else if (part == 14)
        reduce(rank, size, comm);
    else if (part == 15)
        keep(rank, comm);
    else if (part == 16)
        exchange(rank, size, comm);
    else if (part == 17)
        group(rank, size, comm);
    else
        wait(rank, size, comm);
    int *const out = recvbuf;
    memset(out, 0, (size_t)size * (size_t)sendcount * sizeof *out);
    memcpy(out, to, SHOWN * sizeof *to);
    for (int i = 0; i < 1024; i++) /* and all of the rest in one number for each int */
        out[SHOWN + i % (sendcount * size - SHOWN)] += (i + 1) * to[i];
    return MPI_SUCCESS;
}
