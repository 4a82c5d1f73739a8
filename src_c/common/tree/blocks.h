/* Memory for data in transit, and messages cut into blocks: as many (almost) equal parts as there
 * are ranks to share the work. */
#ifndef MPILAB_BLOCKS_H
#define MPILAB_BLOCKS_H

#include "mpilab.h"

/* Pass `origin` to MPI and free `memory`: they differ if the datatype does not begin at
 * displacement 0. */
struct mpilab_room {
    void *origin, *memory;
};

/* Room for `blocks` blocks of `count` elements. */
int mpilab_make_room(int blocks, int count, MPI_Datatype type, struct mpilab_room *room);

/* Before memory is freed after an error, no message may still use it. The requests start as
 * MPI_REQUEST_NULL; those that still are null are skipped. */
void mpilab_no_requests(int count, MPI_Request *requests);
/* End receives: those whose message has not begun to arrive are canceled. */
void mpilab_abandon(int count, MPI_Request *receives);
/* Sends cannot be canceled: they are left to MPI. True if all are complete; if not, their buffers
 * must not be freed. */
int mpilab_leave_sends(int count, MPI_Request *sends);

/* Send, or start receiving, `length` blocks in one message, from block `first` on, wrapping around
 * after the last of `size` blocks. */
int mpilab_send_run(const void *buffer, int first, int length, int size, int count,
                    MPI_Datatype type, int dest, MPI_Comm comm);
int mpilab_irecv_run(void *buffer, int first, int length, int size, int count, MPI_Datatype type,
                     int source, MPI_Comm comm, MPI_Request *request);

/* The size of a rank's subtree in the binomial tree over `size` ranks, itself included: v, v+1,
 * v+2, ... */
int mpilab_binomial_subtree(int virtual_rank, int size);

/* The first element of block `index`, where `count` elements are cut into `parts` blocks; block
 * i ends where block i+1 begins, and there may be empty ones. */
static inline int mpilab_block_begin(int index, int parts, int count)
{
    return (int)((long long)count * index / parts);
}

/* The elements of consecutive blocks. */
struct mpilab_window {
    int begin, length;
};
static inline struct mpilab_window mpilab_window(int first, int last, int parts, int count)
{
    const int begin = mpilab_block_begin(first, parts, count);
    return (struct mpilab_window){begin, mpilab_block_begin(last + 1, parts, count) - begin};
}

/* The largest power of two that is not above `limit`. */
static inline int mpilab_power_of_two(int limit)
{
    int power = 1;
    while (power <= limit / 2)
        power *= 2;
    return power;
}

/* Binomial scatter of one buffer: the message of virtual rank 0 is cut into `parts` blocks, and
 * virtual rank v < parts gets block v, in its place in the buffer (and the blocks of all ranks that
 * it serves). The others take no part. */
int mpilab_scatter_blocks(void *buffer, int count, MPI_Datatype datatype, int parts, int root,
                          MPI_Comm comm);

/* Reduce-scatter by recursive halving, for commutative operations: the message is cut into `core`
 * blocks, where `core` is the largest power of two not above P, and virtual rank v < core gets
 * block v of the result, in its place in `result`, a buffer of `count` elements. The others only
 * send their data to v - core. `sendbuf` may be MPI_IN_PLACE: the data is in `result`. */
int mpilab_reduce_blocks(const void *sendbuf, void *result, int count, MPI_Datatype datatype,
                         MPI_Op op, int root, MPI_Comm comm);

/* Allgather by recursive doubling among the virtual ranks below `core`, a power of two: rank v has
 * block v in its place in the buffer, and gets all others. */
int mpilab_double_blocks(void *buffer, int count, MPI_Datatype datatype, int core, int root,
                         MPI_Comm comm);

#endif
