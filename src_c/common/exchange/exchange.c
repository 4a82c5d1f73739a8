/* The two buffers of an alltoallv: their layout, and parts of blocks as bytes; blocks sent directly
 * from rank to rank; memory for other ranks' data. */
#include "exchange.h"
#include "../tree/blocks.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct mpilab_side side_of(const void *buffer, const int counts[], const int displs[],
                                  MPI_Datatype type)
{
    struct mpilab_side side = {(char *)buffer, counts, displs, type, 0, 0, 0};
    MPI_Aint lower_bound;
    int integers, addresses, types, combiner;
    MPI_Type_get_extent(type, &lower_bound, &side.extent);
    MPI_Type_size(type, &side.type_bytes);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    side.is_plain = combiner == MPI_COMBINER_NAMED && side.extent == side.type_bytes;
    return side;
}

static long long bytes_of(const struct mpilab_side *side, int peer)
{
    return (long long)side->counts[peer] * side->type_bytes;
}

static char *block_of(const struct mpilab_side *side, int peer)
{
    return side->buffer + side->displs[peer] * side->extent;
}

static char *element_of(const struct mpilab_side *side, int peer, long long index)
{
    return block_of(side, peer) + index * side->extent;
}

static int pack_elements(const struct mpilab_exchange *exchange, int peer, long long first,
                         long long count, char *to)
{
    const struct mpilab_side *const sent = &exchange->sent;
    const long long bytes = count * sent->type_bytes;
    int position = 0;
    if (bytes > INT_MAX)
        return MPI_ERR_COUNT;
    if (sent->is_plain) {
        memcpy(to, element_of(sent, peer, first), (size_t)bytes);
        return MPI_SUCCESS;
    }
    return MPI_Pack(element_of(sent, peer, first), (int)count, sent->type, to, (int)bytes,
                    &position, exchange->comm);
}

static int copy_what_is_sent(struct mpilab_exchange *exchange)
{
    const int size = exchange->size;
    MPI_Aint *const copied = malloc((size_t)size * sizeof *copied);
    long long total = 0;
    if (copied == NULL)
        return MPI_ERR_NO_MEM;
    for (int peer = 0; peer < size; peer++) {
        copied[peer] = (MPI_Aint)total;
        total += peer == exchange->rank ? 0 : bytes_of(&exchange->sent, peer);
    }
    char *const copy = malloc(total > 0 ? (size_t)total : 1);
    int err = copy == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    for (int peer = 0; peer < size && err == MPI_SUCCESS; peer++)
        if (peer != exchange->rank && bytes_of(&exchange->sent, peer) > 0)
            err =
                pack_elements(exchange, peer, 0, exchange->sent.counts[peer], copy + copied[peer]);
    exchange->copied = copied;
    exchange->copy = copy;
    return err;
}

int mpilab_begin_exchange(const void *sendbuf, const int sendcounts[], const int sdispls[],
                          MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                          const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                          struct mpilab_exchange *exchange)
{
    const int in_place = sendbuf == MPI_IN_PLACE;
    *exchange = (struct mpilab_exchange){.comm = comm};
    MPI_Comm_rank(comm, &exchange->rank);
    MPI_Comm_size(comm, &exchange->size);
    exchange->received = side_of(recvbuf, recvcounts, rdispls, recvtype);
    exchange->sent =
        in_place ? exchange->received : side_of(sendbuf, sendcounts, sdispls, sendtype);
    if (exchange->sent.type_bytes < 0 || exchange->received.type_bytes < 0)
        return MPI_ERR_TYPE; /* MPI_UNDEFINED: too large for an int */
    exchange->unfinished = calloc((size_t)exchange->size, sizeof *exchange->unfinished);
    if (exchange->unfinished == NULL)
        return MPI_ERR_NO_MEM;
    return in_place ? copy_what_is_sent(exchange) : MPI_SUCCESS;
}

void mpilab_end_exchange(struct mpilab_exchange *exchange)
{
    for (int peer = 0; peer < exchange->size && exchange->unfinished != NULL; peer++)
        free(exchange->unfinished[peer]);
    free(exchange->unfinished);
    free(exchange->copy);
    free(exchange->copied);
}

long long mpilab_bytes_to(const struct mpilab_exchange *exchange, int peer)
{
    return bytes_of(&exchange->sent, peer);
}

long long mpilab_bytes_from(const struct mpilab_exchange *exchange, int peer)
{
    return bytes_of(&exchange->received, peer);
}

struct mpilab_message mpilab_block_for(const struct mpilab_exchange *exchange, int peer)
{
    const struct mpilab_side *const sent = &exchange->sent;
    if (exchange->copy == NULL)
        return (struct mpilab_message){block_of(sent, peer), sent->counts[peer], sent->type};
    return (struct mpilab_message){exchange->copy + exchange->copied[peer],
                                   (int)bytes_of(sent, peer), MPI_PACKED};
}

void *mpilab_block_from(const struct mpilab_exchange *exchange, int peer)
{
    return block_of(&exchange->received, peer);
}

int mpilab_pack(const struct mpilab_exchange *exchange, int peer, long long begin, long long bytes,
                char *to)
{
    if (bytes == 0)
        return MPI_SUCCESS;
    if (exchange->copy != NULL) {
        memcpy(to, exchange->copy + exchange->copied[peer] + begin, (size_t)bytes);
        return MPI_SUCCESS;
    }
    const int each = exchange->sent.type_bytes;
    const long long first = begin / each, last = (begin + bytes + each - 1) / each;
    if ((last - first) * each == bytes)
        return pack_elements(exchange, peer, first, last - first, to);
    /* MPI packs whole elements only. */
    char *const whole = malloc((size_t)((last - first) * each));
    if (whole == NULL)
        return MPI_ERR_NO_MEM;
    const int err = pack_elements(exchange, peer, first, last - first, whole);
    if (err == MPI_SUCCESS)
        memcpy(to, whole + (begin - first * each), (size_t)bytes);
    free(whole);
    return err;
}

static int unpack_elements(const struct mpilab_exchange *exchange, int peer, long long first,
                           long long count, const char *from)
{
    const struct mpilab_side *const received = &exchange->received;
    int position = 0;
    if (count == 0)
        return MPI_SUCCESS;
    if (received->is_plain) {
        memcpy(element_of(received, peer, first), from, (size_t)(count * received->type_bytes));
        return MPI_SUCCESS;
    }
    return MPI_Unpack(from, (int)(count * received->type_bytes), &position,
                      element_of(received, peer, first), (int)count, received->type,
                      exchange->comm);
}

int mpilab_unpack(struct mpilab_exchange *exchange, int peer, long long begin, long long bytes,
                  const char *from)
{
    if (bytes == 0)
        return MPI_SUCCESS;
    const int each = exchange->received.type_bytes;
    const int held = (int)(begin % each); /* of an element that began in an earlier part */
    char **const unfinished = &exchange->unfinished[peer];
    long long done = 0;
    int err = MPI_SUCCESS;
    if (*unfinished == NULL && (held > 0 || bytes % each > 0)) {
        *unfinished = malloc((size_t)each);
        if (*unfinished == NULL)
            return MPI_ERR_NO_MEM;
    }
    if (held > 0) {
        done = bytes < each - held ? bytes : each - held;
        memcpy(*unfinished + held, from, (size_t)done);
        if (held + done < each)
            return MPI_SUCCESS;
        err = unpack_elements(exchange, peer, begin / each, 1, *unfinished);
    }
    const long long whole = (bytes - done) / each;
    if (err == MPI_SUCCESS)
        err = unpack_elements(exchange, peer, (begin + done) / each, whole, from + done);
    done += whole * each;
    if (done < bytes)
        memcpy(*unfinished, from + done, (size_t)(bytes - done));
    return err;
}

/* --- blocks sent directly from rank to rank, all at once */

/* This rank's own block, unless it is already there. */
static int copy_own(const struct mpilab_exchange *exchange)
{
    const int rank = exchange->rank;
    const long long bytes = mpilab_bytes_to(exchange, rank);
    if (exchange->copy != NULL || bytes == 0)
        return MPI_SUCCESS;
    const struct mpilab_message own = mpilab_block_for(exchange, rank);
    if (exchange->sent.is_plain && exchange->received.is_plain &&
        mpilab_bytes_from(exchange, rank) == bytes) {
        memcpy(mpilab_block_from(exchange, rank), own.data, (size_t)bytes);
        return MPI_SUCCESS;
    }
    return copy_local(own.data, own.count, own.type, mpilab_block_from(exchange, rank),
                      exchange->received.counts[rank], exchange->received.type);
}

static int receive_from(const struct mpilab_exchange *exchange, int peer,
                        struct mpilab_direct *direct)
{
    if (mpilab_bytes_from(exchange, peer) == 0)
        return MPI_SUCCESS;
    return MPI_Irecv(mpilab_block_from(exchange, peer), exchange->received.counts[peer],
                     exchange->received.type, peer, TAG, exchange->comm,
                     &direct->requests[direct->started++]);
}

static int send_to(const struct mpilab_exchange *exchange, int peer, struct mpilab_direct *direct)
{
    if (mpilab_bytes_to(exchange, peer) == 0)
        return MPI_SUCCESS;
    const struct mpilab_message block = mpilab_block_for(exchange, peer);
    return MPI_Isend(block.data, block.count, block.type, peer, TAG, exchange->comm,
                     &direct->requests[direct->started++]);
}

int mpilab_begin_direct(const struct mpilab_exchange *exchange, const int *peers, int count,
                        struct mpilab_direct *direct)
{
    int self = 0, err = MPI_SUCCESS;
    *direct = (struct mpilab_direct){malloc((2 * (size_t)count + 1) * sizeof(MPI_Request)), 0, 0};
    if (direct->requests == NULL)
        return MPI_ERR_NO_MEM;
    mpilab_no_requests(2 * count + 1, direct->requests);
    while (self < count && (peers == NULL ? self : peers[self]) != exchange->rank)
        self++;
    /* Each rank begins with its neighbors: if all began with the same rank, they would flood it. */
    for (int step = 1; step < count && err == MPI_SUCCESS; step++) {
        const int at = (self - step + count) % count;
        err = receive_from(exchange, peers == NULL ? at : peers[at], direct);
    }
    direct->receives = direct->started;
    for (int step = 1; step < count && err == MPI_SUCCESS; step++) {
        const int at = (self + step) % count;
        err = send_to(exchange, peers == NULL ? at : peers[at], direct);
    }
    return err == MPI_SUCCESS ? copy_own(exchange) : err;
}

int mpilab_end_direct(struct mpilab_exchange *exchange, struct mpilab_direct *direct, int err)
{
    const int sends = direct->started - direct->receives;
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(direct->started, direct->requests, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS) {
        mpilab_abandon(direct->receives, direct->requests);
        if (!mpilab_leave_sends(sends, direct->requests + direct->receives))
            exchange->copy = NULL;
    }
    free(direct->requests);
    return err;
}

/* --- memory for other ranks' data: never more than the budget; the maximum is kept so that a test
 * can check the bound */

long mpilab_most_staged;

int mpilab_hold(struct mpilab_staging *staging, long bytes)
{
    if (bytes > staging->budget - staging->held)
        return 0;
    staging->held += bytes;
    if (staging->held > mpilab_most_staged)
        mpilab_most_staged = staging->held;
    return 1;
}

void mpilab_release(struct mpilab_staging *staging, long bytes)
{
    staging->held -= bytes;
}

void *mpilab_stage(struct mpilab_staging *staging, long bytes)
{
    if (!mpilab_hold(staging, bytes))
        return NULL;
    void *const memory = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (memory == NULL)
        mpilab_release(staging, bytes);
    return memory;
}

void mpilab_unstage(struct mpilab_staging *staging, void *memory, long bytes)
{
    if (memory != NULL)
        mpilab_release(staging, bytes);
    free(memory);
}
