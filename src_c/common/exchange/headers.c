/* Headers within a node: how they are laid out, written, and read. */
#include "headers.h"
#include "../tree/blocks.h"
#include <stdlib.h>
#include <string.h>

/* How much room a header has for a piggybacked first piece. */
static int piggyback_room(const struct mpilab_plan *plan)
{
    const long long most = plan->route->one_by_one ? 0 : plan->piece * plan->remote;
    return most < MOST_PIGGYBACKED ? (int)most : MOST_PIGGYBACKED;
}

int is_piggybacked(const struct mpilab_plan *plan, const struct task *task, const long long *row)
{
    long long all = 0;
    for (int i = 0; i < plan->remote; i++)
        all += row[i];
    return task->begin == 0 && !plan->route->one_by_one && all <= MOST_PIGGYBACKED;
}

/* What a header from a local rank holds: this many numbers, followed by this much room. */
struct header {
    int numbers, room;
};

static struct header header_from(const struct mpilab_plan *plan, int local)
{
    if (plan->route->carrier(plan->topology, plan_local_rank(plan, local)) != plan->rank)
        return (struct header){plan_served(plan), 0};
    return (struct header){plan->remote + plan_served(plan), piggyback_room(plan)};
}

static long header_bytes(struct header header)
{
    return header.numbers * (long)sizeof(long long) + header.room;
}

/* --- writing */

/* What this rank sends to remote ranks, if the local rank is its carrier; what it receives from the
 * sources whose data the local rank distributes; and the piggybacked piece. A rank sends itself no
 * header. */
static int write_to(struct mpilab_plan *plan, int local, long long **next)
{
    const struct mpilab_topology *const topology = plan->topology;
    const int dest = plan_local_rank(plan, local);
    const int is_carrier = plan->route->carrier(topology, plan->rank) == dest;
    const struct task first = task_of(plan, 0);
    long long *const begin = *next;
    long long piggybacked = 0;
    int err = MPI_SUCCESS;
    if (is_carrier) {
        plan->own_out = begin;
        for (int place = 0; place < topology->size; place++)
            if (topology->node[topology->order[place]] != plan->node)
                *(*next)++ = mpilab_bytes_to(plan->exchange, topology->order[place]);
    }
    for (int i = plan->source_begin[local]; i < plan->source_begin[local + 1]; i++)
        *(*next)++ = plan->own_in[i] = mpilab_bytes_from(plan->exchange, plan->source[i]);
    if (local == plan->self || *next == begin)
        return MPI_SUCCESS;
    const long header_size = (*next - begin) * (long)sizeof **next;
    if (is_carrier && is_piggybacked(plan, &first, plan->own_out)) {
        piggybacked = bytes_up(plan, &first, plan->own_out);
        err = plan_pack_up(plan, &first, (char *)*next);
        *next += (piggybacked + (long)sizeof **next - 1) / (long)sizeof **next;
    }
    if (err != MPI_SUCCESS)
        return err;
    return MPI_Isend(begin, (int)(header_size + piggybacked), MPI_BYTE, dest, TAG,
                     plan->exchange->comm, &plan->header_sends[plan->header_send_count++]);
}

/* --- reading */
static int take_room(struct mpilab_plan *plan)
{
    long bytes = 1, piggybacked = 0;
    for (int local = 0; local < plan->locals; local++)
        if (local != plan->self) {
            const struct header header = header_from(plan, local);
            bytes += header_bytes(header);
            piggybacked += header.room;
        }
    if (!mpilab_hold(&plan->staging, piggybacked))
        return MPI_ERR_NO_MEM;
    plan->piggyback_room = piggybacked;
    plan->headers = malloc((size_t)bytes);
    return plan->headers == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

/* Note where the numbers of a local rank are; this rank's own are in what it has written. */
static void note(struct mpilab_plan *plan, int local, const long long *row)
{
    const int numbers = header_from(plan, local).numbers, remote = numbers - plan_served(plan);
    plan->out[local] = remote > 0 ? row : NULL;
    plan->in[local] = row + remote;
}

static int receive_all(struct mpilab_plan *plan, MPI_Request *receives, int *receiving)
{
    char *at = plan->headers;
    int err = MPI_SUCCESS;
    for (int local = 0; local < plan->locals && err == MPI_SUCCESS; local++) {
        const struct header header = header_from(plan, local);
        if (local == plan->self || header.numbers == 0)
            continue;
        err = MPI_Irecv(at, (int)header_bytes(header), MPI_BYTE, plan_local_rank(plan, local), TAG,
                        plan->exchange->comm, &receives[(*receiving)++]);
        at += header_bytes(header);
    }
    return err;
}

static int write_all(struct mpilab_plan *plan)
{
    long long *next = plan->headers_sent;
    int err = MPI_SUCCESS;
    for (int local = 0; local < plan->locals && err == MPI_SUCCESS; local++) {
        if (local == plan->self)
            note(plan, local, next);
        err = write_to(plan, local, &next);
    }
    return err;
}

static void read_numbers(struct mpilab_plan *plan)
{
    const char *at = plan->headers;
    long long *counts = plan->counts_received;
    for (int local = 0; local < plan->locals; local++) {
        if (local == plan->self)
            continue;
        const struct header header = header_from(plan, local);
        memcpy(counts, at, (size_t)header.numbers * sizeof *counts);
        note(plan, local, counts);
        counts += header.numbers;
        at += header_bytes(header);
    }
}

int headers_exchange(struct mpilab_plan *plan)
{
    MPI_Request *const receives = malloc((size_t)plan->locals * sizeof *receives);
    int receiving = 0, err = receives == NULL ? MPI_ERR_NO_MEM : take_room(plan);
    if (receives != NULL)
        mpilab_no_requests(plan->locals, receives);
    if (err == MPI_SUCCESS)
        err = receive_all(plan, receives, &receiving);
    if (err == MPI_SUCCESS)
        err = write_all(plan);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(receiving, receives, MPI_STATUSES_IGNORE);
    if (err == MPI_SUCCESS)
        read_numbers(plan);
    else
        mpilab_abandon(receiving, receives);
    free(receives);
    return err;
}

void headers_unpack(struct mpilab_plan *plan, char *up)
{
    const struct task first = task_of(plan, 0);
    const char *at = plan->headers;
    for (int local = 0; local < plan->locals; local++) {
        if (local == plan->self)
            continue;
        const struct header header = header_from(plan, local);
        at += header_bytes(header);
        if (plan->out[local] == NULL)
            continue;
        const long long bytes = bytes_up(plan, &first, plan->out[local]);
        if (is_piggybacked(plan, &first, plan->out[local]))
            memcpy(up, at - header.room, (size_t)bytes);
        up += bytes;
    }
    plan_free_headers(plan);
}
