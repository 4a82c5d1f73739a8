/* The window that a communicator's ranks share, its slots, and waiting for them. */
#define _GNU_SOURCE
#include "memory.h"
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often a waiting rank looks before it sleeps, some 100 µs; how long it sleeps at most before
 * MPI gets a turn. */
enum { LOOKS = 5000, NAP_NS = 1000000, LINE_BYTES = 64, PAGE_BYTES = 4096 };

/* A number of steps, and how many ranks sleep until it grows; in a cache line of its own. */
struct progress {
    _Alignas(LINE_BYTES) _Atomic uint32_t steps;
    _Atomic uint32_t sleepers;
};

/* One rank's part of the window. */
struct part {
    struct progress published, ended;
    _Alignas(LINE_BYTES) char slots[MPILAB_SLOTS][MPILAB_SLOT_BYTES];
};

struct mpilab_shared_state {
    MPI_Win window; /* MPI_WIN_NULL if the ranks are on several nodes */
    uint32_t step;
    int rank, size, looks;
    struct part *parts[];
};

static int key = MPI_KEYVAL_INVALID;

static int discard(MPI_Comm comm, int comm_key, void *value, void *extra)
{
    (void)comm, (void)comm_key, (void)extra;
    struct mpilab_shared_state *state = value;
    const int err = state->window == MPI_WIN_NULL ? MPI_SUCCESS : MPI_Win_free(&state->window);
    free(state);
    return err;
}

static int on_one_node(MPI_Comm comm, int size, int *are_together)
{
    MPI_Comm node;
    int on_node = 0;
    int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_size(node, &on_node);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_free(&node);
    *are_together = on_node == size;
    return err;
}

static int make_window(MPI_Comm comm, struct mpilab_shared_state *state)
{
    int are_together;
    int err = on_one_node(comm, state->size, &are_together);
    if (err != MPI_SUCCESS || !are_together)
        return err;
    char *base;
    err = MPI_Win_allocate_shared(sizeof(struct part) + LINE_BYTES, 1, MPI_INFO_NULL, comm, &base,
                                  &state->window);
    for (int rank = 0; rank < state->size && err == MPI_SUCCESS; rank++) {
        MPI_Aint bytes;
        int unit;
        err = MPI_Win_shared_query(state->window, rank, &bytes, &unit, &base);
        /* Pages lie at different addresses in each process, but all find the same line in them. */
        base += (LINE_BYTES - (uintptr_t)base % LINE_BYTES) % LINE_BYTES;
        state->parts[rank] = (struct part *)base;
    }
    if (err != MPI_SUCCESS)
        return err;
    /* Pages are made when they are first touched, here rather than in calls that may be timed. */
    memset(state->parts[state->rank], 0, sizeof(struct part));
    err = MPI_Barrier(comm);
    for (int rank = 0; rank < state->size; rank++)
        for (size_t at = 0; at < sizeof(struct part); at += PAGE_BYTES)
            (void)((const volatile char *)state->parts[rank])[at];
    return err;
}

static int make_state(MPI_Comm comm, struct mpilab_shared_state **state)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    struct mpilab_shared_state *fresh =
        calloc(1, sizeof *fresh + (size_t)size * sizeof fresh->parts[0]);
    if (fresh == NULL)
        return MPI_ERR_NO_MEM;
    fresh->window = MPI_WIN_NULL;
    fresh->rank = rank;
    fresh->size = size;
    fresh->looks = size > sysconf(_SC_NPROCESSORS_ONLN) ? 1 : LOOKS;
    int err = make_window(comm, fresh);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_set_attr(comm, key, fresh);
    if (err != MPI_SUCCESS) {
        discard(comm, key, fresh, NULL);
        return err;
    }
    *state = fresh;
    return MPI_SUCCESS;
}

int mpilab_shared_of(MPI_Comm comm, struct mpilab_shared *shared)
{
    int err = MPI_SUCCESS, found = 0;
    if (key == MPI_KEYVAL_INVALID)
        err = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, discard, &key, NULL);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_get_attr(comm, key, &shared->state, &found);
    if (err == MPI_SUCCESS && !found)
        err = make_state(comm, &shared->state);
    if (err != MPI_SUCCESS)
        return err;
    shared->rank = shared->state->rank;
    shared->size = shared->state->window == MPI_WIN_NULL ? 0 : shared->state->size;
    return MPI_SUCCESS;
}

/* Numbers of steps wrap around, so their difference counts. */
static int reaches(uint32_t now, uint32_t steps)
{
    return (int32_t)(now - steps) >= 0;
}

static void advance(struct progress *progress, uint32_t steps)
{
    atomic_store(&progress->steps, steps);
    if (atomic_load(&progress->sleepers) > 0)
        syscall(SYS_futex, &progress->steps, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void sleep_until(struct progress *progress, uint32_t steps)
{
    const struct timespec nap = {0, NAP_NS};
    uint32_t now;
    atomic_fetch_add(&progress->sleepers, 1);
    while (!reaches(now = atomic_load(&progress->steps), steps))
        /* It sleeps only if the number is still `now`. */
        if (syscall(SYS_futex, &progress->steps, FUTEX_WAIT, now, &nap, NULL, 0) != 0 &&
            errno == ETIMEDOUT) {
            /* Messages that this rank has started elsewhere make progress in calls of MPI only. */
            int is_there;
            MPI_Iprobe(0, TAG, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
        }
    atomic_fetch_sub(&progress->sleepers, 1);
}

/* Some 20 ns in which the other hardware thread of a core has it for itself. */
static void relax(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb");
#endif
}

static void wait_for(const struct mpilab_shared *shared, struct progress *progress, uint32_t steps)
{
    for (int look = 0; look < shared->state->looks; look++) {
        if (reaches(atomic_load_explicit(&progress->steps, memory_order_acquire), steps))
            return;
        relax();
    }
    sleep_until(progress, steps);
}

void *mpilab_own_slot(const struct mpilab_shared *shared)
{
    const uint32_t step = shared->state->step;
    for (int rank = 0; rank < shared->size; rank++)
        if (rank != shared->rank)
            wait_for(shared, &shared->state->parts[rank]->ended, step + 1 - MPILAB_SLOTS);
    return shared->state->parts[shared->rank]->slots[step % MPILAB_SLOTS];
}

void mpilab_publish(const struct mpilab_shared *shared)
{
    advance(&shared->state->parts[shared->rank]->published, shared->state->step + 1);
}

const void *mpilab_slot_of(const struct mpilab_shared *shared, int rank)
{
    const uint32_t step = shared->state->step;
    struct part *const part = shared->state->parts[rank];
    wait_for(shared, &part->published, step + 1);
    return part->slots[step % MPILAB_SLOTS];
}

void mpilab_end_step(const struct mpilab_shared *shared)
{
    advance(&shared->state->parts[shared->rank]->ended, ++shared->state->step);
}
