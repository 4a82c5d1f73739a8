/* Running a case: load the kernel, fill the buffers, call it, write what came out. */
#define _GNU_SOURCE
#include "../recorder/recorder_api.h"
#include "harness.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How many calls of one case fit into a recording. */
enum { RECORDING_CAPACITY = 20000 };

struct collective {
    const char *name;
    int (*prepare)(struct subject *);
    int (*call)(struct subject *);
};

static const struct collective collectives[] = {
    {"allgather", prepare_allgather, call_allgather},
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
        MPI_Barrier(subject->comm);
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
typedef void close_recorder(void);

struct loaded {
    void *handle;
    void (*kernel)(void);
    open_recorder *open;
    close_recorder *close;
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
    *(void **)&loaded->close = dlsym(loaded->handle, "mpilab_recorder_close");
    if (loaded->kernel == NULL)
        return harness_fail("%s: no function %s in it", library, function);
    if (loaded->open == NULL || loaded->close == NULL)
        return harness_fail("%s: no recorder in it; build it with mpilab", library);
    return 0;
}

static int run(struct subject *subject, const struct collective *collective,
               const struct loaded *loaded, const char *directory)
{
    const struct mpilab_case *order = subject->order;
    char path[4096];
    if (collective->prepare(subject) != 0)
        return 1;
    fill_region(&subject->sent, order->seed, subject->rank, SEND_STREAM);
    fill_region(&subject->received, order->seed, subject->rank, RECEIVE_STREAM);

    struct span *spans = calloc((size_t)order->repetitions, sizeof *spans);
    if (spans == NULL)
        return harness_fail("out of memory: %ld repetitions", order->repetitions);

    int failed = 0;
    if (order->record) {
        snprintf(path, sizeof path, "%s/%ld.%d.rec", directory, order->id, subject->rank);
        const int error = loaded->open(path, subject->comm, RECORDING_CAPACITY, order->strict);
        if (error != 0)
            failed = harness_fail("%s: %s", path, strerror(error));
    }
    if (!failed) {
        const int returned = call_repeatedly(subject, collective, spans);
        loaded->close();
        snprintf(path, sizeof path, "%s/%ld.%d.out", directory, order->id, subject->rank);
        failed = write_output(path, subject, returned, spans);
    }
    free(spans);
    return failed;
}

int mpilab_run_case(MPI_Comm comm, const char *line, const char *library, const char *function,
                    const char *directory)
{
    struct mpilab_case order;
    struct loaded loaded;
    struct subject subject = {.order = &order};
    if (parse_case(line, &order) != 0 || load(library, function, &loaded) != 0)
        return 1;
    const struct collective *collective = find_collective(order.collective);
    if (collective == NULL || make_datatypes(order.datatype, &subject.types) != 0)
        return 1;

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

    MPI_Comm_free(&subject.comm);
    free_datatypes(&subject.types);
    free_region(&subject.sent);
    free_region(&subject.received);
    return failed;
}
