/* Letters within a node: how they are laid out, written, and read. */
#include "letters.h"
#include "../tree/blocks.h"
#include "travel.h"
#include <stdlib.h>
#include <string.h>

/* What that comes to in a first piece. */
static int room_for_riding(const struct mpilab_plan *plan)
{
    const long long most = plan->route->one_by_one ? 0 : plan->piece * plan->remote;
    return most < MOST_RIDING ? (int)most : MOST_RIDING;
}

int rides(const struct mpilab_plan *plan, const struct task *task, const long long *row)
{
    long long all = 0;
    for (int i = 0; i < plan->remote; i++)
        all += row[i];
    return task->begin == 0 && !plan->route->one_by_one && all <= MOST_RIDING;
}

static int rank_of_mate(const struct mpilab_plan *plan, int mate)
{
    return plan->topology->order[plan->begin + mate];
}

/* What a mate tells this rank: so many numbers, and behind them there is so much room. */
struct letter {
    int numbers, room;
};

static struct letter letter_from(const struct mpilab_plan *plan, int mate)
{
    if (plan->route->carrier(plan->topology, rank_of_mate(plan, mate)) != plan->rank)
        return (struct letter){mpilab_served(plan), 0};
    return (struct letter){plan->remote + mpilab_served(plan), room_for_riding(plan)};
}

static long letter_bytes(struct letter letter)
{
    return letter.numbers * (long)sizeof(long long) + letter.room;
}

/* --- written */

/* What this rank sends to remote ranks, if the mate carries it; what it gets from the sources that
 * the mate hands out for; and what rides. To itself, a rank sends no letter. */
static int write_to(struct mpilab_plan *plan, int mate, long long **next)
{
    const struct mpilab_topology *const topology = plan->topology;
    const int dest = rank_of_mate(plan, mate);
    const int is_carrier = plan->route->carrier(topology, plan->rank) == dest;
    const struct task first = task_of(plan, 0);
    long long *const begin = *next;
    long long riding = 0;
    int err = MPI_SUCCESS;
    if (is_carrier) {
        plan->own_out = begin;
        for (int place = 0; place < topology->size; place++)
            if (topology->node[topology->order[place]] != plan->node)
                *(*next)++ = mpilab_bytes_to(plan->exchange, topology->order[place]);
    }
    for (int i = plan->source_begin[mate]; i < plan->source_begin[mate + 1]; i++)
        *(*next)++ = plan->own_in[i] = mpilab_bytes_from(plan->exchange, plan->source[i]);
    if (mate == plan->self || *next == begin)
        return MPI_SUCCESS;
    const long told = (*next - begin) * (long)sizeof **next;
    if (is_carrier && rides(plan, &first, plan->own_out)) {
        riding = bytes_up(plan, &first, plan->own_out);
        err = travel_pack_up(plan, &first, (char *)*next);
        *next += (riding + (long)sizeof **next - 1) / (long)sizeof **next;
    }
    if (err != MPI_SUCCESS)
        return err;
    return MPI_Isend(begin, (int)(told + riding), MPI_BYTE, dest, TAG, plan->exchange->comm,
                     &plan->telling[plan->tellings++]);
}

/* --- read */
static int take_room(struct mpilab_plan *plan)
{
    long bytes = 1, riding = 0;
    for (int mate = 0; mate < plan->mates; mate++)
        if (mate != plan->self) {
            const struct letter letter = letter_from(plan, mate);
            bytes += letter_bytes(letter);
            riding += letter.room;
        }
    if (!mpilab_hold(&plan->staging, riding))
        return MPI_ERR_NO_MEM;
    plan->riding = riding;
    plan->letters = malloc((size_t)bytes);
    return plan->letters == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

/* Where the numbers of a mate will stand: those of this rank itself in what it has written. */
static void note(struct mpilab_plan *plan, int mate, const long long *row)
{
    const int numbers = letter_from(plan, mate).numbers, remote = numbers - mpilab_served(plan);
    plan->out[mate] = remote > 0 ? row : NULL;
    plan->in[mate] = row + remote;
}

static int receive_all(struct mpilab_plan *plan, MPI_Request *hearing, int *listening)
{
    char *at = plan->letters;
    int err = MPI_SUCCESS;
    for (int mate = 0; mate < plan->mates && err == MPI_SUCCESS; mate++) {
        const struct letter letter = letter_from(plan, mate);
        if (mate == plan->self || letter.numbers == 0)
            continue;
        err = MPI_Irecv(at, (int)letter_bytes(letter), MPI_BYTE, rank_of_mate(plan, mate), TAG,
                        plan->exchange->comm, &hearing[(*listening)++]);
        at += letter_bytes(letter);
    }
    return err;
}

static int write_all(struct mpilab_plan *plan)
{
    long long *told = plan->told;
    int err = MPI_SUCCESS;
    for (int mate = 0; mate < plan->mates && err == MPI_SUCCESS; mate++) {
        if (mate == plan->self)
            note(plan, mate, told);
        err = write_to(plan, mate, &told);
    }
    return err;
}

static void read_numbers(struct mpilab_plan *plan)
{
    const char *at = plan->letters;
    long long *heard = plan->heard;
    for (int mate = 0; mate < plan->mates; mate++) {
        if (mate == plan->self)
            continue;
        const struct letter letter = letter_from(plan, mate);
        memcpy(heard, at, (size_t)letter.numbers * sizeof *heard);
        note(plan, mate, heard);
        heard += letter.numbers;
        at += letter_bytes(letter);
    }
}

int letters_exchange(struct mpilab_plan *plan)
{
    MPI_Request *const hearing = malloc((size_t)plan->mates * sizeof *hearing);
    int listening = 0, err = hearing == NULL ? MPI_ERR_NO_MEM : take_room(plan);
    if (hearing != NULL)
        mpilab_no_requests(plan->mates, hearing);
    if (err == MPI_SUCCESS)
        err = receive_all(plan, hearing, &listening);
    if (err == MPI_SUCCESS)
        err = write_all(plan);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(listening, hearing, MPI_STATUSES_IGNORE);
    if (err == MPI_SUCCESS)
        read_numbers(plan);
    else
        mpilab_abandon(listening, hearing);
    free(hearing);
    return err;
}

void letters_open(struct mpilab_plan *plan, char *up)
{
    const struct task first = task_of(plan, 0);
    const char *at = plan->letters;
    for (int mate = 0; mate < plan->mates; mate++) {
        if (mate == plan->self)
            continue;
        const struct letter letter = letter_from(plan, mate);
        at += letter_bytes(letter);
        if (plan->out[mate] == NULL)
            continue;
        const long long bytes = bytes_up(plan, &first, plan->out[mate]);
        if (rides(plan, &first, plan->out[mate]))
            memcpy(up, at - letter.room, (size_t)bytes);
        up += bytes;
    }
    letters_burn(plan);
}

void letters_burn(struct mpilab_plan *plan)
{
    mpilab_release(&plan->staging, plan->riding);
    plan->riding = 0;
    free(plan->letters);
    plan->letters = NULL;
}
