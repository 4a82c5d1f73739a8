/* The process of the simulation as each rank sees it: its clock, its program. */
#define _GNU_SOURCE
#include "simulated.h"
#undef dlopen
#undef dladdr
#undef mmap
#include <limits.h>
#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/barrier.h>
#include <simgrid/engine.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NS = 1000000000 };

/* Simulated time begins at 0, which in a recording means "not yet", so this clock starts at 1 s. */
int simulated_clock(struct timespec *now)
{
    const long long ns = llround(simgrid_get_clock() * NS) + NS;
    now->tv_sec = (time_t)(ns / NS);
    now->tv_nsec = (long)(ns % NS);
    return 0;
}

/* Wait for all ranks without a message: finished ranks must not disturb the others. */
int simulated_meet(MPI_Comm world)
{
    static sg_bar_t barrier; /* of all ranks: they share the process */
    int err = MPI_SUCCESS, rank, size;
    if (barrier == NULL) {
        PMPI_Comm_rank(world, &rank);
        PMPI_Comm_size(world, &size);
        if (rank == 0)
            barrier = sg_barrier_init((unsigned)size);
        err = PMPI_Bcast(&barrier, sizeof barrier, MPI_BYTE, 0, world);
    }
    if (err == MPI_SUCCESS)
        sg_barrier_wait(barrier);
    return err;
}

/* All ranks leave at the same moment, on a full second: a barrier made of messages releases some
 * earlier, and times counted from full seconds need no rounding. */
int simulated_barrier(MPI_Comm world)
{
    const int err = simulated_meet(world);
    simulated_stop_polling(); /* a kernel may have ended with a poll in vain */
    sg_actor_sleep_for(ceil(simgrid_get_clock()) + 1 - simgrid_get_clock());
    return err;
}

/* The harness begins every case with it: no rank does so before all have finished the previous
 * one. */
int simulated_comm_split(MPI_Comm world, int color, int key, MPI_Comm *made)
{
    const int err = simulated_meet(world);
    return err == MPI_SUCCESS ? PMPI_Comm_split(world, color, key, made) : err;
}

/* SimGrid ends the simulation at a message to a rank that has ended: the last case's are caught here,
 * like those of the others. */
int simulated_finalize(void)
{
    const int err = simulated_meet(MPI_COMM_WORLD);
    return err == MPI_SUCCESS ? PMPI_Finalize() : err;
}

void *simulated_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    void *const memory = mmap(address, bytes, protection, flags, file, offset);
    if (memory != MAP_FAILED)
        (void)madvise(memory, bytes, MADV_RANDOM); /* advice only: nothing depends on it */
    return memory;
}

/* The program that was copied: sites in a recording refer to it, and it has the line numbers. */
static char program[PATH_MAX];

static const char *own_copy(void)
{
    Dl_info info;
    return dladdr((void *)(uintptr_t)own_copy, &info) != 0 ? info.dli_fname : NULL;
}

void *simulated_dlopen(const char *library, int flags)
{
    if (realpath(library, program) == NULL)
        snprintf(program, sizeof program, "%s", library);
    /* It is loaded already, and SMPI may have removed the file. */
    return dlopen(own_copy(), flags | RTLD_NOLOAD);
}

int simulated_dladdr(const void *address, Dl_info *info)
{
    const int found = dladdr(address, info);
    const char *copy = own_copy();
    if (found && *program != '\0' && copy != NULL && strcmp(info->dli_fname, copy) == 0)
        info->dli_fname = program;
    return found;
}
