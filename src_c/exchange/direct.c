/* Blocks that go straight from rank to rank, all at once. */
#include "../tree/blocks.h"
#include "exchange.h"
#include <stdlib.h>
#include <string.h>

/* The own block, where it is not there already. */
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
    /* Each begins with the ranks next to it: if all began with one, that one would be flooded. */
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
