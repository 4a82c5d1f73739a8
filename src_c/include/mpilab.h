/* What every kernel may include: MPI, the helpers for blocks, and the prototypes of our kernels.
 *
 * A *kernel* has exactly the prototype of the MPI collective that it implements, and returns
 * MPI_SUCCESS or the first error code. A *block* is what one rank contributes: in an allgather,
 * block i of the receive buffer is `recvcount` elements of `recvtype` that come from rank i.
 */
#ifndef MPILAB_H
#define MPILAB_H

#include <mpi.h>
#include <stddef.h>

/* The tag of every message in our kernels: one is enough, because MPI keeps the messages of a
 * pair of ranks in order. */
enum { TAG = 2047 };

/* Address of block `index` in a buffer whose blocks are `count` elements of `type`. */
static inline void *block(const void *buffer, int index, int count, MPI_Datatype type)
{
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    return (char *)buffer + (MPI_Aint)index * count * extent;
}

/* Copy typed data within this rank. A message to oneself is the one portable way to copy between
 * two different datatypes (MPI 4.1, section 5.1). It is no message in a recording. */
static inline int copy_local(const void *from, int fromcount, MPI_Datatype fromtype, void *to,
                             int tocount, MPI_Datatype totype)
{
    return MPI_Sendrecv(from, fromcount, fromtype, 0, TAG, to, tocount, totype, 0, TAG,
                        MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/* Put this rank's own block where it belongs in the receive buffer; with MPI_IN_PLACE it is
 * there already. */
static inline int place_own_block(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, int recvcount, MPI_Datatype recvtype, int rank)
{
    if (sendbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return copy_local(sendbuf, sendcount, sendtype, block(recvbuf, rank, recvcount, recvtype),
                      recvcount, recvtype);
}

/* The other way round, for a scatter: take the root's own block out of its send buffer. */
static inline int take_own_block(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, int recvcount, MPI_Datatype recvtype, int rank)
{
    if (recvbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return copy_local(block(sendbuf, rank, sendcount, sendtype), sendcount, sendtype, recvbuf,
                      recvcount, recvtype);
}

/* A datatype that covers two runs of blocks, wherever they lie in a buffer: `length[i]` blocks
 * from block `first[i]` on, for i = 0 and 1 (a length may be 0). One message can so carry blocks
 * that are not neighbours. The caller frees it with MPI_Type_free. */
static inline int two_runs_type(const int first[2], const int length[2], int count,
                                MPI_Datatype type, MPI_Datatype *runs)
{
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    const MPI_Aint stride = count * extent;
    const MPI_Aint place[2] = {first[0] * stride, first[1] * stride};
    MPI_Datatype run[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    /* MPI_Type_indexed would do as well, but SimGrid 3.32 takes no heed of a type's holes there. */
    int err = MPI_Type_create_hvector(length[0], count, stride, type, &run[0]);
    if (err == MPI_SUCCESS)
        err = MPI_Type_create_hvector(length[1], count, stride, type, &run[1]);
    if (err == MPI_SUCCESS)
        err = MPI_Type_create_struct(2, (int[]){1, 1}, place, run, runs);
    if (err == MPI_SUCCESS)
        err = MPI_Type_commit(runs);
    for (int i = 0; i < 2; i++)
        if (run[i] != MPI_DATATYPE_NULL)
            MPI_Type_free(&run[i]);
    return err;
}

/* The datatype of `length` blocks from block `first` on, going on at block 0 after the last of
 * `size` blocks. The caller frees it with MPI_Type_free. */
static inline int wrapped_run_type(int first, int length, int size, int count, MPI_Datatype type,
                                   MPI_Datatype *run)
{
    const int until_end = length < size - first ? length : size - first;
    return two_runs_type((int[]){first, 0}, (int[]){until_end, length - until_end}, count, type,
                         run);
}

/* What algorithms can be tuned by. Set before the call, to the same on all ranks; 0 means the
 * algorithm's own default. */
struct mpilab_tuning {
    long segment_bytes; /* a message is cut into segments of so many bytes */
    int fanout;         /* chains of a chain, children in a tree */
    int radix;          /* of a k-nomial tree */
};
extern struct mpilab_tuning mpilab_tuning;

#define MPILAB_BCAST(name) \
    int bcast_##name(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
#define MPILAB_GATHER(name)                                                                     \
    int gather_##name(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, \
                      int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
#define MPILAB_SCATTER(name)                                                                     \
    int scatter_##name(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, \
                       int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
#define MPILAB_REDUCE(name)                                                                 \
    int reduce_##name(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, \
                      MPI_Op op, int root, MPI_Comm comm)
#define MPILAB_ALLREDUCE(name)                                                                 \
    int allreduce_##name(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, \
                         MPI_Op op, MPI_Comm comm)
#define MPILAB_BARRIER(name) int barrier_##name(MPI_Comm comm)
#define MPILAB_ALLGATHER(name)                                                                     \
    int allgather_##name(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, \
                         int recvcount, MPI_Datatype recvtype, MPI_Comm comm)

MPILAB_BCAST(linear);
MPILAB_BCAST(chain);
MPILAB_BCAST(pipeline);
MPILAB_BCAST(binary);
MPILAB_BCAST(split_binary);
MPILAB_BCAST(binomial);
MPILAB_BCAST(knomial);
MPILAB_BCAST(scatter_allgather);
MPILAB_BCAST(scatter_allgather_ring);

MPILAB_GATHER(linear);
MPILAB_GATHER(binomial);
MPILAB_GATHER(linear_sync);

MPILAB_SCATTER(linear);
MPILAB_SCATTER(binomial);
MPILAB_SCATTER(linear_nb);

MPILAB_REDUCE(linear);
MPILAB_REDUCE(chain);
MPILAB_REDUCE(pipeline);
MPILAB_REDUCE(binary);
MPILAB_REDUCE(binomial);
MPILAB_REDUCE(in_order_binary);
MPILAB_REDUCE(rabenseifner);

MPILAB_BARRIER(linear);
MPILAB_BARRIER(double_ring);
MPILAB_BARRIER(recursive_doubling);
MPILAB_BARRIER(dissemination);
MPILAB_BARRIER(tree);

MPILAB_ALLREDUCE(recursive_doubling);
MPILAB_ALLREDUCE(ring);
MPILAB_ALLREDUCE(segmented_ring);
MPILAB_ALLREDUCE(rabenseifner);

MPILAB_ALLGATHER(nonblocking_gather_bcast);
MPILAB_ALLGATHER(nonblocking_all);
MPILAB_ALLGATHER(pairwise);
MPILAB_ALLGATHER(ring);
MPILAB_ALLGATHER(recursive_doubling);
MPILAB_ALLGATHER(bruck);
MPILAB_ALLGATHER(neighbor_exchange);

#endif
