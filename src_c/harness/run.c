/* Running a case: load the kernel, fill the buffers, call it, write what came out. */
#define _GNU_SOURCE
#include "../include/mpilab.h"
#include "../recorder/recorder_api.h"
#include "harness.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How many calls of one case fit into a recording; the largest buffer that is looked at again
 * after each of them. */
enum { RECORDING_CAPACITY = 20000, WATCHED_BYTES = 4096 };

struct collective {
    const char *name;
    struct blocks (*blocks)(const struct subject *);
    int (*call)(struct subject *);
};

static const struct collective collectives[] = {
    {"allgather", blocks_of_allgather, call_allgather},
    {"allreduce", blocks_of_allreduce, call_allreduce},
    {"barrier", blocks_of_barrier, call_barrier},
    {"bcast", blocks_of_bcast, call_bcast},
    {"gather", blocks_of_gather, call_gather},
    {"reduce", blocks_of_reduce, call_reduce},
    {"scatter", blocks_of_scatter, call_scatter},
};

static const struct collective *find_collective(const char *name)
{
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
        if (strcmp(collectives[i].name, name) == 0)
            return &collectives[i];
    harness_fail("collective=%s: unknown", name);
    return NULL;
}

static int64_t clock_ns(void)
{
    /* MPI_Wtime starts at 0 in each process since Open MPI 5.0.7; spans over ranks of one machine
     * need one clock. */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct span {
    int64_t begin_ns, end_ns;
};

static int call_repeatedly(struct subject *subject, const struct collective *collective,
                           struct span *spans)
{
    const struct mpilab_case *order = subject->order;
    int err = MPI_SUCCESS;
    for (long i = -order->warmup; i < order->repetitions && err == MPI_SUCCESS; i++) {
        /* Not on the kernel's communicator, whose barrier may be any of Open MPI's: in which order
         * it lets the ranks go would count as time of what is called. */
        MPI_Barrier(subject->parent);
        struct span span;
        span.begin_ns = clock_ns();
        err = collective->call(subject);
        span.end_ns = clock_ns();
        if (i >= 0)
            spans[i] = span;
    }
    return err;
}

/* The file is a header of eight 64-bit words, the receive region, the send region, the spans. */
static int write_output(const char *path, const struct subject *subject, int returned,
                        const struct span *spans)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return harness_fail("%s: %s", path, strerror(errno));
    const struct mpilab_case *order = subject->order;
    const int64_t received = order->dump ? region_total(&subject->received) : 0;
    const int64_t sent = order->dump ? region_total(&subject->sent) : 0;
    int64_t header[8] = {0,        subject->rank, subject->size,      returned,
                         received, sent,          order->repetitions, 0};
    memcpy(header, "MPILABO1", 8);
    size_t written = fwrite(header, sizeof header, 1, file);
    if (received > 0)
        written += fwrite(subject->received.memory, (size_t)received, 1, file);
    if (sent > 0)
        written += fwrite(subject->sent.memory, (size_t)sent, 1, file);
    written += fwrite(spans, sizeof *spans, (size_t)order->repetitions, file);
    const size_t expected = 1 + (received > 0) + (sent > 0) + (size_t)order->repetitions;
    if (fclose(file) != 0 || written != expected)
        return harness_fail("%s: cannot be written: %s", path, strerror(errno));
    return 0;
}

typedef int open_recorder(const char *, MPI_Comm, long, int);
typedef void watch_memory(const void *, long, const char *);
typedef void be_strict(int);
typedef void end_recorder(void);

struct loaded {
    void *handle;
    void (*kernel)(void);
    open_recorder *open;
    watch_memory *watch;
    be_strict *strict;
    end_recorder *finish, *close;
    struct mpilab_tuning *tuning;
};

static int load(const char *library, const char *function, struct loaded *loaded)
{
    /* Never unloaded: the recorder in it holds callbacks that MPI may still call. */
    loaded->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (loaded->handle == NULL)
        return harness_fail("%s", dlerror());
    /* ISO C has no cast from void * to a function; POSIX prescribes this one. */
    *(void **)&loaded->kernel = dlsym(loaded->handle, function);
    *(void **)&loaded->open = dlsym(loaded->handle, "mpilab_recorder_open");
    *(void **)&loaded->watch = dlsym(loaded->handle, "mpilab_recorder_watch");
    *(void **)&loaded->strict = dlsym(loaded->handle, "mpilab_recorder_strict");
    *(void **)&loaded->finish = dlsym(loaded->handle, "mpilab_recorder_finish");
    *(void **)&loaded->close = dlsym(loaded->handle, "mpilab_recorder_close");
    loaded->tuning = dlsym(loaded->handle, "mpilab_tuning");
    if (loaded->kernel == NULL)
        return harness_fail("%s: no function %s in it", library, function);
    if (loaded->open == NULL || loaded->watch == NULL || loaded->strict == NULL ||
        loaded->finish == NULL || loaded->close == NULL || loaded->tuning == NULL)
        return harness_fail("%s: no recorder in it; build it with mpilab", library);
    return 0;
}

/* The path of a file of this case and rank: DIRECTORY/ID.RANK.KIND. */
static const char *name_file(char path[static PATH_MAX], const struct subject *subject,
                             const char *directory, const char *kind)
{
    snprintf(path, PATH_MAX, "%s/%ld.%d.%s", directory, subject->order->id, subject->rank, kind);
    return path;
}

static int begin_recording(const struct subject *subject, const struct loaded *loaded,
                           const char *directory)
{
    const struct mpilab_case *order = subject->order;
    char path[PATH_MAX];
    if (!order->record) {
        loaded->strict(order->strict);
        return 0;
    }
    name_file(path, subject, directory, "rec");
    const int error = loaded->open(path, subject->comm, RECORDING_CAPACITY, order->strict);
    if (error != 0)
        return harness_fail("%s: %s", path, strerror(error));
    if (order->snapshots && subject->received.bytes <= WATCHED_BYTES)
        loaded->watch(region_data(&subject->received), subject->received.bytes,
                      name_file(path, subject, directory, "mem"));
    return 0;
}

/* Call the kernel as often as the case says, with what it prints going to a file. */
static int call_kernel(struct subject *subject, const struct collective *collective,
                       const struct loaded *loaded, const char *directory, struct span *spans,
                       int *returned)
{
    const int keeps_files = subject->order->record || subject->order->dump;
    char path[PATH_MAX];
    struct printing printing;
    name_file(path, subject, directory, "txt");
    if (keeps_files && begin_printing(&printing, path) != 0)
        return 1;
    forbid_guards(&subject->sent);
    forbid_guards(&subject->received);
    *returned = call_repeatedly(subject, collective, spans);
    loaded->finish();
    loaded->strict(0);
    allow_guards(&subject->sent);
    allow_guards(&subject->received);
    if (keeps_files)
        end_printing(&printing);
    return 0;
}

/* One call whose messages are counted below MPI. */
static int monitor(struct subject *subject, const struct collective *collective,
                   const char *directory)
{
    char path[PATH_MAX];
    MPI_Barrier(subject->parent);
    if (begin_monitoring(subject) != 0)
        return 1;
    const int err = collective->call(subject);
    if (err != MPI_SUCCESS)
        return harness_fail("the call to be monitored returned the error %d", err);
    return end_monitoring(subject, name_file(path, subject, directory, "mon"));
}

static int run(struct subject *subject, const struct collective *collective,
               const struct loaded *loaded, const char *directory)
{
    const struct mpilab_case *order = subject->order;
    subject->blocks = collective->blocks(subject);
    if (prepare_buffers(subject) != 0 ||
        (order->monitor && monitor(subject, collective, directory) != 0))
        return 1;
    struct span *spans = calloc((size_t)order->repetitions, sizeof *spans);
    if (spans == NULL)
        return harness_fail("out of memory: %ld repetitions", order->repetitions);

    char path[PATH_MAX];
    int returned = MPI_SUCCESS;
    int failed = begin_recording(subject, loaded, directory);
    if (!failed)
        failed = call_kernel(subject, collective, loaded, directory, spans, &returned);
    if (!failed)
        failed = write_output(name_file(path, subject, directory, "out"), subject, returned, spans);
    free(spans);
    return failed;
}

int mpilab_run_case(MPI_Comm comm, const char *line, const char *library, const char *function,
                    const char *directory)
{
    struct mpilab_case order;
    struct loaded loaded;
    struct subject subject = {.order = &order, .parent = comm};
    if (parse_case(line, &order) != 0 ||
        load(library, *order.function ? order.function : function, &loaded) != 0)
        return 1;
    const struct collective *collective = find_collective(order.collective);
    if (collective == NULL || make_datatypes(order.datatype, &subject.types) != 0 ||
        make_operation(order.op, order.datatype, &subject.op) != 0 ||
        (order.openmpi >= 0 && choose_openmpi(&order) != 0))
        return 1;
    *loaded.tuning = (struct mpilab_tuning){order.segment_bytes, order.fanout, order.radix};

    /* A communicator of its own, so that a message left over cannot reach the next case; and an
     * error is returned to the kernel, which has to pass it on. */
    int rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_split(comm, 0, order.reversed ? -rank : rank, &subject.comm);
    MPI_Comm_set_errhandler(subject.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(subject.comm, &subject.rank);
    MPI_Comm_size(subject.comm, &subject.size);
    subject.kernel = loaded.kernel;

    const int failed = run(&subject, collective, &loaded, directory);

    /* What the kernel has cached on its communicator goes with it, and is no leak: so the recorder
     * closes after. */
    MPI_Comm_free(&subject.comm);
    loaded.close();
    free_datatypes(&subject.types);
    free_operation(&subject.op);
    free_region(&subject.sent);
    free_region(&subject.received);
    return failed;
}
