/* Collective calls, and those that make or free a communicator: calls that hang if a rank is
 * missing or gives a different root. Each line defines a blocking form and its nonblocking one. */
#include "recorder.h"

static struct mpilab_record *begin(enum mpilab_operation operation, int flags, MPI_Comm comm,
                                   int root, int count, MPI_Datatype datatype, uintptr_t site)
{
    struct mpilab_record *record = record_begin(operation, flags | MPILAB_COLLECTIVE, comm, site);
    if (recorder_is_on()) {
        record->peer = root < 0 ? MPILAB_NONE : communicator_rank(comm, root);
        record->count = count;
        record->bytes = typed_bytes(count, datatype);
        record->sequence = communicator_sequence(comm);
        record->members = communicator_size(comm);
    }
    return record;
}

#define NO_ROOT -1

/* COLLECTIVE(blocking name, non-blocking name, parameters, values, root, count, datatype) */
#define UNWRAP(...) __VA_ARGS__
#define COLLECTIVE(name, iname, parameters, values, root, count, datatype)                     \
    int MPI_##name(UNWRAP parameters, MPI_Comm comm)                                           \
    {                                                                                          \
        struct mpilab_record *record =                                                         \
            begin(MPILAB_##name, 0, comm, root, count, datatype, CALL_SITE);                   \
        return record_end_blocking(record, PMPI_##name(UNWRAP values, comm));                  \
    }                                                                                          \
    int MPI_##iname(UNWRAP parameters, MPI_Comm comm, MPI_Request *request)                    \
    {                                                                                          \
        struct mpilab_record *record =                                                         \
            begin(MPILAB_##iname, MPILAB_NONBLOCKING, comm, root, count, datatype, CALL_SITE); \
        return record_end_start(record, comm, request,                                         \
                                PMPI_##iname(UNWRAP values, comm, request));                   \
    }

int MPI_Barrier(MPI_Comm comm)
{
    struct mpilab_record *record =
        begin(MPILAB_Barrier, 0, comm, NO_ROOT, 0, MPI_DATATYPE_NULL, CALL_SITE);
    return record_end_blocking(record, PMPI_Barrier(comm));
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    struct mpilab_record *record =
        begin(MPILAB_Ibarrier, MPILAB_NONBLOCKING, comm, NO_ROOT, 0, MPI_DATATYPE_NULL, CALL_SITE);
    return record_end_start(record, comm, request, PMPI_Ibarrier(comm, request));
}

COLLECTIVE(Bcast, Ibcast, (void *buffer, int count, MPI_Datatype datatype, int root),
           (buffer, count, datatype, root), root, count, datatype)

#define ONE_TO_EACH                                                                           \
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, \
     MPI_Datatype recvtype, int root)
#define ONE_TO_EACH_VALUES (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root)
COLLECTIVE(Gather, Igather, ONE_TO_EACH, ONE_TO_EACH_VALUES, root, sendcount,
           sendbuf == MPI_IN_PLACE ? MPI_DATATYPE_NULL : sendtype)
COLLECTIVE(Scatter, Iscatter, ONE_TO_EACH, ONE_TO_EACH_VALUES, root, recvcount,
           recvbuf == MPI_IN_PLACE ? MPI_DATATYPE_NULL : recvtype)

COLLECTIVE(Gatherv, Igatherv,
           (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root), root,
           sendcount, sendbuf == MPI_IN_PLACE ? MPI_DATATYPE_NULL : sendtype)
COLLECTIVE(Scatterv, Iscatterv,
           (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype,
            void *recvbuf, int recvcount, MPI_Datatype recvtype, int root),
           (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root), root,
           recvcount, recvbuf == MPI_IN_PLACE ? MPI_DATATYPE_NULL : recvtype)

#define EACH_TO_EACH                                                                          \
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, \
     MPI_Datatype recvtype)
#define EACH_TO_EACH_VALUES (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)
COLLECTIVE(Allgather, Iallgather, EACH_TO_EACH, EACH_TO_EACH_VALUES, NO_ROOT, recvcount, recvtype)
COLLECTIVE(Alltoall, Ialltoall, EACH_TO_EACH, EACH_TO_EACH_VALUES, NO_ROOT, recvcount, recvtype)

COLLECTIVE(Allgatherv, Iallgatherv,
           (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
            const int recvcounts[], const int displs[], MPI_Datatype recvtype),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype), NO_ROOT,
           sendcount, sendbuf == MPI_IN_PLACE ? MPI_DATATYPE_NULL : sendtype)
COLLECTIVE(Alltoallv, Ialltoallv,
           (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
            void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype),
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype),
           NO_ROOT, 0, MPI_DATATYPE_NULL)
/* On a communicator of one rank, Open MPI 5.0.11 multiplies these displacements, which are in bytes,
 * by extents (coll_self_alltoall.c). So the buffers themselves are moved there, and the displacements
 * are 0. */
static int is_alone(MPI_Comm comm)
{
    int size = 0;
    return comm != MPI_COMM_NULL && PMPI_Comm_size(comm, &size) == MPI_SUCCESS && size == 1;
}

static void *moved(const void *buffer, const int displs[], MPI_Comm comm)
{
    /* In integers: a buffer without elements may be NULL. */
    const uintptr_t distance =
        buffer != MPI_IN_PLACE && is_alone(comm) ? (uintptr_t)(intptr_t)displs[0] : 0;
    return (void *)((uintptr_t)buffer + distance);
}

static const int *unmoved(const int displs[], MPI_Comm comm)
{
    static const int zero[1];
    return is_alone(comm) ? zero : displs;
}

COLLECTIVE(Alltoallw, Ialltoallw,
           (const void *sendbuf, const int sendcounts[], const int sdispls[],
            const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
            const int rdispls[], const MPI_Datatype recvtypes[]),
           (moved(sendbuf, sdispls, comm), sendcounts, unmoved(sdispls, comm), sendtypes,
            moved(recvbuf, rdispls, comm), recvcounts, unmoved(rdispls, comm), recvtypes),
           NO_ROOT, 0, MPI_DATATYPE_NULL)

COLLECTIVE(Reduce, Ireduce,
           (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
            int root),
           (sendbuf, recvbuf, count, datatype, op, root), root, count, datatype)

#define REDUCED (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op)
#define REDUCED_VALUES (sendbuf, recvbuf, count, datatype, op)
COLLECTIVE(Allreduce, Iallreduce, REDUCED, REDUCED_VALUES, NO_ROOT, count, datatype)
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, REDUCED, REDUCED_VALUES, NO_ROOT, count,
           datatype)
COLLECTIVE(Scan, Iscan, REDUCED, REDUCED_VALUES, NO_ROOT, count, datatype)
COLLECTIVE(Exscan, Iexscan, REDUCED, REDUCED_VALUES, NO_ROOT, count, datatype)
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype,
            MPI_Op op),
           (sendbuf, recvbuf, recvcounts, datatype, op), NO_ROOT, 0, MPI_DATATYPE_NULL)

/* A new communicator gets its number when it is made: all ranks make communicators in the same
 * order, but may use them in another. */
static int end_birth(struct mpilab_record *record, MPI_Comm comm, const MPI_Comm *born, int err)
{
    if (err == MPI_SUCCESS && *born != MPI_COMM_NULL)
        recorder_errors_inherit(comm, *born);
    if (err == MPI_SUCCESS && recorder_is_on() && *born != MPI_COMM_NULL)
        communicator_born(*born, record);
    return record_end_blocking(record, err);
}

#define BIRTH(name, parameters, values)                                              \
    int MPI_##name(MPI_Comm comm, UNWRAP parameters MPI_Comm *born)                  \
    {                                                                                \
        struct mpilab_record *record =                                               \
            begin(MPILAB_##name, 0, comm, NO_ROOT, 0, MPI_DATATYPE_NULL, CALL_SITE); \
        return end_birth(record, comm, born, PMPI_##name(comm, UNWRAP values born)); \
    }

BIRTH(Comm_dup, (), ())
BIRTH(Comm_split, (int color, int order, ), (color, order, ))
BIRTH(Comm_create, (MPI_Group group, ), (group, ))

int MPI_Comm_split_type(MPI_Comm comm, int type, int order, MPI_Info info, MPI_Comm *born)
{
    struct mpilab_record *record =
        begin(MPILAB_Comm_split_type, 0, comm, NO_ROOT, 0, MPI_DATATYPE_NULL, CALL_SITE);
    const int has_part = type == MPI_COMM_TYPE_SHARED;
    if ((has_part || type == MPI_UNDEFINED) && place_is_pretended())
        return end_birth(record, comm, born, place_split_by_node(comm, has_part, order, born));
    return end_birth(record, comm, born, PMPI_Comm_split_type(comm, type, order, info, born));
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *born)
{
    /* Only the members of the group make this call: it is not a collective on `comm`. */
    struct mpilab_record *record = record_begin(MPILAB_Comm_create_group, 0, comm, CALL_SITE);
    return end_birth(record, comm, born, PMPI_Comm_create_group(comm, group, tag, born));
}

/* Freeing, in both of its forms. */
#define END_OF_LIFE(name)                                                                \
    int MPI_##name(MPI_Comm *comm)                                                       \
    {                                                                                    \
        struct mpilab_record *record =                                                   \
            begin(MPILAB_Comm_free, 0, comm == NULL ? MPI_COMM_NULL : *comm, NO_ROOT, 0, \
                  MPI_DATATYPE_NULL, CALL_SITE);                                         \
        return record_end_blocking(record, PMPI_##name(comm));                           \
    }

END_OF_LIFE(Comm_free)
END_OF_LIFE(Comm_disconnect)
