/* What the algorithms of an alltoallv share: its two buffers, block by block; what goes straight
 * from rank to rank; and memory for data of other ranks, which is bounded.
 *
 * A *pair* is a rank that sends and one that receives. Both know how many bytes go from one to the
 * other, because MPI asks that their counts and datatypes agree: so pairs that have nothing to say
 * send no message.
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
    int is_plain; /* of a basic datatype without holes: packed, a block is what it is in memory */
};

/* A call of MPI_Alltoallv. */
struct mpilab_exchange {
    MPI_Comm comm;
    int rank, size;
    struct mpilab_side sent, received;
    char *copy;        /* with MPI_IN_PLACE: what is sent, packed and in order of ranks, or NULL */
    MPI_Aint *copied;  /* [size] where in `copy` each block begins */
    char **unfinished; /* [size] of each peer the beginning of an element that came in parts */
};

/* Take in the arguments of a call, without a message. With MPI_IN_PLACE all that is sent is copied
 * first: the data that come in would overwrite it. End it with mpilab_end_exchange, also after an
 * error.
 *
 * MPI_ERR_TYPE where an element has more than INT_MAX bytes: MPI_Type_size does not tell how many.
 * Only the rank that has such a datatype learns of it; others may describe the same data with
 * smaller elements, and wait for them in vain. MPI_ERR_COUNT, likewise, where a block to be copied
 * for MPI_IN_PLACE has more than INT_MAX bytes. */
int mpilab_begin_exchange(const void *sendbuf, const int sendcounts[], const int sdispls[],
                          MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                          const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                          struct mpilab_exchange *exchange);
void mpilab_end_exchange(struct mpilab_exchange *exchange);

/* Bytes that this rank sends to a peer, or receives from it. */
long long mpilab_bytes_to(const struct mpilab_exchange *exchange, int peer);
long long mpilab_bytes_from(const struct mpilab_exchange *exchange, int peer);

/* What to hand to MPI to send a peer its block. */
struct mpilab_message {
    const void *data;
    int count;
    MPI_Datatype type;
};
struct mpilab_message mpilab_block_for(const struct mpilab_exchange *exchange, int peer);
/* Where to receive a peer's block. */
void *mpilab_block_from(const struct mpilab_exchange *exchange, int peer);

/* Copy `bytes` bytes from byte `begin` on of the packed block for a peer to `to`, or put so many
 * into the block from a peer. A part may begin and end within an element; the parts from a peer
 * have to come one after the other. A packed block is taken to hold its data and nothing else, as
 * in Open MPI and SimGrid on machines of one kind: so whoever passes parts on needs no datatypes.
 */
int mpilab_pack(const struct mpilab_exchange *exchange, int peer, long long begin, long long bytes,
                char *to);
int mpilab_unpack(struct mpilab_exchange *exchange, int peer, long long begin, long long bytes,
                  const char *from);

/* --- Blocks that go straight from rank to rank. They are under way from the beginning
 * until the end. The `peers` (NULL: all ranks) include this rank: its own block is copied. */
struct mpilab_direct {
    MPI_Request *requests; /* first those of receives */
    int receives, started;
};
int mpilab_begin_direct(const struct mpilab_exchange *exchange, const int *peers, int count,
                        struct mpilab_direct *direct);
/* `err` is what came of all before. After an error receives are cancelled, and sends not waited
 * for: a copy that they are sent from is then never freed. */
int mpilab_end_direct(struct mpilab_exchange *exchange, struct mpilab_direct *direct, int err);

/* --- Memory for data that are on their way to other ranks */
struct mpilab_staging {
    long budget, held;
};
enum { MPILAB_BUDGET_BYTES = 8 << 20 }; /* where mpilab_tuning says nothing */
/* NULL if that would be more than the budget in all, or if there is no memory. */
void *mpilab_stage(struct mpilab_staging *staging, long bytes);
void mpilab_unstage(struct mpilab_staging *staging, void *memory, long bytes);
/* Memory that is taken in another way, or given back: only counted. False if that would be too much.
 */
int mpilab_hold(struct mpilab_staging *staging, long bytes);
void mpilab_release(struct mpilab_staging *staging, long bytes);
/* The most that was ever held at once, since somebody set it to 0. */
extern long mpilab_most_staged;

#endif
