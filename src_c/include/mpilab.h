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

/* A datatype that covers two runs of blocks, wherever they lie in a buffer: `length[i]` blocks
 * from block `first[i]` on, for i = 0 and 1 (a length may be 0). One message can so carry blocks
 * that are not neighbours. The caller frees it with MPI_Type_free. */
static inline int two_runs_type(const int first[2], const int length[2], int count,
                                MPI_Datatype type, MPI_Datatype *runs)
{
    MPI_Datatype one_block;
    int err = MPI_Type_contiguous(count, type, &one_block);
    if (err != MPI_SUCCESS)
        return err;
    err = MPI_Type_indexed(2, length, first, one_block, runs);
    if (err == MPI_SUCCESS)
        err = MPI_Type_commit(runs);
    MPI_Type_free(&one_block);
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

#define MPILAB_ALLGATHER(name)                                                                     \
    int allgather_##name(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, \
                         int recvcount, MPI_Datatype recvtype, MPI_Comm comm)

MPILAB_ALLGATHER(nonblocking_gather_bcast);
MPILAB_ALLGATHER(nonblocking_all);
MPILAB_ALLGATHER(pairwise);
MPILAB_ALLGATHER(ring);
MPILAB_ALLGATHER(recursive_doubling);
MPILAB_ALLGATHER(bruck);
MPILAB_ALLGATHER(neighbor_exchange);

#endif
