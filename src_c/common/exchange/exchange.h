/* What the alltoallv algorithms share: the two buffers, block by block; messages sent directly from
 * rank to rank; and a bounded amount of memory for other ranks' data.
 *
 * A *pair* is a sending rank and a receiving rank. Both know how many bytes go from one to the
 * other, because MPI requires their counts and datatypes to agree: a pair without data sends no
 * message.
 */
#ifndef MPILAB_EXCHANGE_H
#define MPILAB_EXCHANGE_H

#include "mpilab.h"

/* One buffer of the call, a block for each peer. */
struct mpilab_side {
    char *buffer;
    const int *counts, *displs;
    MPI_Datatype type;
    int type_bytes; /* of data in one element */
    MPI_Aint extent;
    int is_plain; /* of a basic datatype without holes: a packed block is what it is in memory */
};

/* A call of MPI_Alltoallv. */
struct mpilab_exchange {
    MPI_Comm comm;
    int rank, size;
    struct mpilab_side sent, received;
    char *copy; /* with MPI_IN_PLACE: the data to send, packed in the order of ranks, or NULL */
    MPI_Aint *copied;  /* [size] where in `copy` each block begins */
    char **unfinished; /* [size] the beginning of an element that came from each peer in parts */
};

/* Read the arguments of a call, without sending a message. With MPI_IN_PLACE, all data to be sent
 * is copied first, because incoming data would overwrite it. Call mpilab_end_exchange afterward,
 * even after an error.
 *
 * Returns MPI_ERR_TYPE if an element has more than INT_MAX bytes, a size that MPI_Type_size cannot
 * return. Only the rank with such a datatype gets the error; others may describe the same data with
 * smaller elements, and would wait for it forever. Likewise, returns MPI_ERR_COUNT if a block to be
 * copied for MPI_IN_PLACE has more than INT_MAX bytes. */
int mpilab_begin_exchange(const void *sendbuf, const int sendcounts[], const int sdispls[],
                          MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                          const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                          struct mpilab_exchange *exchange);
void mpilab_end_exchange(struct mpilab_exchange *exchange);

/* Bytes that this rank sends to a peer, or receives from it. */
long long mpilab_bytes_to(const struct mpilab_exchange *exchange, int peer);
long long mpilab_bytes_from(const struct mpilab_exchange *exchange, int peer);

/* The arguments for MPI to send a peer its block. */
struct mpilab_message {
    const void *data;
    int count;
    MPI_Datatype type;
};
struct mpilab_message mpilab_block_for(const struct mpilab_exchange *exchange, int peer);
/* Where to receive a peer's block. */
void *mpilab_block_from(const struct mpilab_exchange *exchange, int peer);

/* Copy `bytes` bytes of the packed block for a peer, starting at byte `begin`, to `to`; or put that
 * many bytes into the block from a peer. A part may begin and end within an element, but the parts
 * from a peer must come in order. A packed block is assumed to hold its data and nothing else, as
 * in Open MPI and SimGrid on homogeneous machines, so a rank that forwards parts needs no
 * datatypes. */
int mpilab_pack(const struct mpilab_exchange *exchange, int peer, long long begin, long long bytes,
                char *to);
int mpilab_unpack(struct mpilab_exchange *exchange, int peer, long long begin, long long bytes,
                  const char *from);

/* --- Blocks sent directly from rank to rank. They are in transit from begin to end. The `peers`
 * (NULL: all ranks) include this rank: its own block is copied. */
struct mpilab_direct {
    MPI_Request *requests; /* receives first */
    int receives, started;
};
int mpilab_begin_direct(const struct mpilab_exchange *exchange, const int *peers, int count,
                        struct mpilab_direct *direct);
/* `err` is the result of everything before. After an error, receives are canceled and sends are not
 * waited for, so a copy that they read from is never freed. */
int mpilab_end_direct(struct mpilab_exchange *exchange, struct mpilab_direct *direct, int err);

/* --- Memory for data in transit to other ranks */
struct mpilab_staging {
    long budget, held;
};
enum { MPILAB_BUDGET_BYTES = 8 << 20 }; /* if mpilab_tuning does not set it */
/* NULL if that would exceed the budget, or if there is no memory. */
void *mpilab_stage(struct mpilab_staging *staging, long bytes);
void mpilab_unstage(struct mpilab_staging *staging, void *memory, long bytes);
/* Count memory that is allocated or freed elsewhere. False if it would exceed the budget. */
int mpilab_hold(struct mpilab_staging *staging, long bytes);
void mpilab_release(struct mpilab_staging *staging, long bytes);
/* The maximum held at once since it was last set to 0. */
extern long mpilab_most_staged;

#endif
