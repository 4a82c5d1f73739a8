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

/* Copy elements of one of MPI's own datatypes if they have no holes and no recording is to show the
 * copy as a call. Returns whether it did. */
int mpilab_copied(const void *from, int fromcount, MPI_Datatype fromtype, void *to, int tocount,
                  MPI_Datatype totype);

/* Copy typed data within this rank. A message to oneself is the one portable way to copy between
 * two different datatypes (MPI 4.1, section 5.1). It is not a message in a recording. */
static inline int copy_local(const void *from, int fromcount, MPI_Datatype fromtype, void *to,
                             int tocount, MPI_Datatype totype)
{
#ifdef OPEN_MPI /* not in a simulation, in which only calls of MPI take time */
    if (mpilab_copied(from, fromcount, fromtype, to, tocount, totype))
        return MPI_SUCCESS;
#endif
    return MPI_Sendrecv(from, fromcount, fromtype, 0, TAG, to, tocount, totype, 0, TAG,
                        MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/* Put this rank's own block where it belongs in the receive buffer; with MPI_IN_PLACE it is already
 * there. */
static inline int place_own_block(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, int recvcount, MPI_Datatype recvtype, int rank)
{
    if (sendbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return copy_local(sendbuf, sendcount, sendtype, block(recvbuf, rank, recvcount, recvtype),
                      recvcount, recvtype);
}

/* The reverse, for a scatter: copy the root's own block from its send buffer. */
static inline int take_own_block(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, int recvcount, MPI_Datatype recvtype, int rank)
{
    if (recvbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return copy_local(block(sendbuf, rank, sendcount, sendtype), sendcount, sendtype, recvbuf,
                      recvcount, recvtype);
}

/* A datatype that covers two runs of blocks, wherever they lie in a buffer: `length[i]` blocks
 * starting at block `first[i]`, for i = 0 and 1 (a length may be 0). So one message can carry
 * blocks that are not adjacent. The caller frees it with MPI_Type_free. */
static inline int two_runs_type(const int first[2], const int length[2], int count,
                                MPI_Datatype type, MPI_Datatype *runs)
{
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    const MPI_Aint stride = count * extent;
    const MPI_Aint place[2] = {first[0] * stride, first[1] * stride};
    MPI_Datatype run[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    /* MPI_Type_indexed would do as well, but SimGrid 3.32 ignores a type's holes there. */
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

/* The datatype of `length` blocks starting at block `first`, continuing at block 0 after the last
 * of `size` blocks. The caller frees it with MPI_Type_free. */
static inline int wrapped_run_type(int first, int length, int size, int count, MPI_Datatype type,
                                   MPI_Datatype *run)
{
    const int until_end = length < size - first ? length : size - first;
    return two_runs_type((int[]){first, 0}, (int[]){until_end, length - until_end}, count, type,
                         run);
}

/* Which rank a process behaves as, in kernels whose names end in _remapped (common/remap/remap.h):
 * what the topology suggests; in SEQ order as if it were RR; the reverse. */
enum mpilab_remap { MPILAB_BY_TOPOLOGY, MPILAB_SEQ_TO_RR, MPILAB_RR_TO_SEQ };

/* The tunables of algorithms. Set before the call, to the same values on all ranks; 0 means the
 * algorithm's default. */
struct mpilab_tuning {
    long segment_bytes; /* size of the segments of a message, in bytes */
    int fanout;         /* chains of a chain, children in a tree */
    int radix;          /* of a k-nomial tree */
    int remap;          /* which rank a process behaves as: enum mpilab_remap */
    long budget_bytes;  /* a rank holds at most this many bytes of other ranks' data */
    long buffer_bytes;  /* a file request is for at most this many bytes */
    int aggregators;    /* ranks that read for all, in a two-phase read */
};
extern struct mpilab_tuning mpilab_tuning;

/* Where a process runs: its host (the *node*), and the *group* of hosts that it belongs to, those
 * of one switch or rack. The group is "" if none is known. */
enum { MPILAB_NAME_BYTES = 256 };
struct mpilab_place {
    char node[MPILAB_NAME_BYTES], group[MPILAB_NAME_BYTES];
};

/* The place of this process. The node is the host's name. The group comes from Slurm under srun
 * (SLURM_TOPOLOGY_ADDR: all switches above the node), otherwise from MPILAB_GROUPS, which lists
 * "node=group,node=group,...". A run may assign other places (mpilab_pretend_place): then this
 * function, MPI_Get_processor_name and MPI_Comm_split_type(MPI_COMM_TYPE_SHARED) agree on those. */
const struct mpilab_place *mpilab_place(void);

/* From now on, this process reports this place; NULL ends this. A communicator whose topology has
 * been queried keeps it (src_c/common/topology). */
void mpilab_pretend_place(const struct mpilab_place *place);

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
#define MPILAB_ALLTOALLV(name)                                                             \
    int alltoallv_##name(const void *sendbuf, const int sendcounts[], const int sdispls[], \
                         MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],     \
                         const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
#define MPILAB_BARRIER(name) int barrier_##name(MPI_Comm comm)
#define MPILAB_ALLGATHER(name)                                                                     \
    int allgather_##name(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, \
                         int recvcount, MPI_Datatype recvtype, MPI_Comm comm)

struct mpilab_matrix; /* matrix.h */

/* Not an MPI collective: every rank of `comm` gets its part of the matrix. The file is open for
 * reading on `comm`; its view is the whole file in bytes, and the kernel must restore this view. */
#define MPILAB_READ(name) \
    int read_##name(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)

MPILAB_BCAST(linear);
MPILAB_BCAST(chain);
MPILAB_BCAST(pipeline);
MPILAB_BCAST(binary);
MPILAB_BCAST(split_binary);
MPILAB_BCAST(binomial);
MPILAB_BCAST(binomial_remapped);
MPILAB_BCAST(knomial);
MPILAB_BCAST(scatter_allgather);
MPILAB_BCAST(scatter_allgather_ring);
MPILAB_BCAST(node);
MPILAB_BCAST(group);
MPILAB_BCAST(node_group);
MPILAB_BCAST(rank_order);
MPILAB_BCAST(pipelined);
MPILAB_BCAST(multilane);
MPILAB_BCAST(circulant);
MPILAB_BCAST(auto);

MPILAB_GATHER(linear);
MPILAB_GATHER(binomial);
MPILAB_GATHER(linear_sync);
MPILAB_GATHER(node);
MPILAB_GATHER(group);
MPILAB_GATHER(node_group);
MPILAB_GATHER(rank_order);
MPILAB_GATHER(pipelined);
MPILAB_GATHER(auto);

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
MPILAB_REDUCE(node);
MPILAB_REDUCE(group);
MPILAB_REDUCE(node_group);
MPILAB_REDUCE(rank_order);
MPILAB_REDUCE(pipelined);
MPILAB_REDUCE(auto);

MPILAB_BARRIER(linear);
MPILAB_BARRIER(double_ring);
MPILAB_BARRIER(recursive_doubling);
MPILAB_BARRIER(dissemination);
MPILAB_BARRIER(tree);

MPILAB_ALLREDUCE(recursive_doubling);
MPILAB_ALLREDUCE(ring);
MPILAB_ALLREDUCE(ring_remapped);
MPILAB_ALLREDUCE(segmented_ring);
MPILAB_ALLREDUCE(rabenseifner);
MPILAB_ALLREDUCE(hierarchical);
MPILAB_ALLREDUCE(multilane);
MPILAB_ALLREDUCE(auto);

MPILAB_ALLGATHER(nonblocking_gather_bcast);
MPILAB_ALLGATHER(nonblocking_all);
MPILAB_ALLGATHER(pairwise);
MPILAB_ALLGATHER(ring);
MPILAB_ALLGATHER(ring_remapped);
MPILAB_ALLGATHER(recursive_doubling);
MPILAB_ALLGATHER(recursive_doubling_remapped);
MPILAB_ALLGATHER(bruck);
MPILAB_ALLGATHER(neighbor_exchange);
MPILAB_ALLGATHER(neighbor_exchange_remapped);
MPILAB_ALLGATHER(hierarchical);
MPILAB_ALLGATHER(pipelined);
MPILAB_ALLGATHER(auto);

MPILAB_ALLTOALLV(linear);
MPILAB_ALLTOALLV(pairwise);
MPILAB_ALLTOALLV(leaders);
MPILAB_ALLTOALLV(gathervs);
MPILAB_ALLTOALLV(multilane);
MPILAB_ALLTOALLV(auto);

MPILAB_READ(scatter);
MPILAB_READ(strided);
MPILAB_READ(view);
MPILAB_READ(sieving);
MPILAB_READ(two_phase);
MPILAB_READ(two_phase_alltoallv);
MPILAB_READ(view_all);

#endif
