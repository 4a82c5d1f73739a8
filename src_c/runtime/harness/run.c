/* Running a case: load the kernel, fill the buffers, call it, write the output. */
#define _GNU_SOURCE
#include "access.h"
#include "loaded.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many calls of one case fit into a recording; the largest buffer that is checked after each of
 * them. */
enum { RECORDING_CAPACITY = 20000, WATCHED_BYTES = 4096 };

struct collective {
    const char *name;
    struct blocks (*blocks)(const struct subject *);
    int (*call)(struct subject *);
    int (*make_exchange)(struct subject *); /* if blocks differ in size */
    int has_file;
};

static const struct collective collectives[] = {
    {"allgather", blocks_of_allgather, call_allgather, NULL, 0},
    {"allreduce", blocks_of_allreduce, call_allreduce, NULL, 0},
    {"alltoallv", blocks_of_alltoallv, call_alltoallv, make_exchange_of_alltoallv, 0},
    {"barrier", blocks_of_barrier, call_barrier, NULL, 0},
    {"bcast", blocks_of_bcast, call_bcast, NULL, 0},
    {"gather", blocks_of_gather, call_gather, NULL, 0},
    {"read", blocks_of_read, call_read, NULL, 1},
    {"reduce", blocks_of_reduce, call_reduce, NULL, 0},
    {"scatter", blocks_of_scatter, call_scatter, NULL, 0},
};

static const struct collective *find_collective(const char *name)
{
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
        if (strcmp(collectives[i].name, name) == 0)
            return &collectives[i];
    harness_fail("collective=%s: unknown", name);
    return NULL;
}

/* The outcome of one case's calls on this rank. */
struct calls {
    struct access *access; /* NULL if no evidence of file access is requested */
    struct called called;
    struct subject earlier[MOST_CALLS - 1]; /* the calls of a sequence before the case's own one */
    int earlier_count;
    /* The kernel has failed here, and the ranks that call it again expect an answer first. */
    int is_expected;
};

/* One call; returns what the kernel returns. A kernel that closes the file takes it from its
 * caller, which can then neither call again nor close it: an error on all ranks, because
 * MPI_File_close is collective. */
static int call_and_keep_file(struct subject *subject, const struct collective *collective,
                              const struct loaded *loaded)
{
    const int returned = collective->call(subject);
    if (loaded->lent_file == NULL || *loaded->lent_file == subject->file)
        return returned;
    subject->file = MPI_FILE_NULL;
    fprintf(stderr, "mpilab: the kernel has closed the file that it was given; leave that to its "
                    "caller\n");
    return returned == MPI_SUCCESS ? MPI_ERR_FILE : returned;
}

static struct checksums checksums_of(const struct subject *subject)
{
    allow_guards(&subject->sent);
    allow_guards(&subject->received);
    const struct checksums found = {region_checksum(&subject->received),
                                    region_checksum(&subject->sent)};
    forbid_guards(&subject->sent);
    forbid_guards(&subject->received);
    return found;
}

static int call_repeatedly(struct subject *subject, const struct collective *collective,
                           const struct loaded *loaded, struct calls *calls)
{
    const struct mpilab_case *order = subject->order;
    struct called *const called = &calls->called;
    int failed = 0;
    for (long i = -order->warmup; i < order->repetitions; i++) {
        if (i > -order->warmup && any_rank(subject->parent, 0))
            break;
        if (calls->access != NULL && (failed = prepare_access(calls->access, (int)i)) != 0)
            break;
        if (subject->later != NULL && i > -order->warmup)
            renew_buffers(subject, i + order->warmup);
        /* Not on the kernel's communicator, which may use any of Open MPI's barriers: the order in
         * which a barrier releases the ranks would count as time of the call. */
        MPI_Barrier(subject->parent);
        struct span span;
        if (calls->access != NULL)
            begin_access(calls->access);
        span.begin_ns = clock_ns();
        called->returned = call_and_keep_file(subject, collective, loaded);
        span.end_ns = clock_ns();
        if (calls->access != NULL)
            end_access(calls->access);
        if (i >= 0)
            called->spans[i] = span;
        if (called->checksums != NULL)
            called->checksums[i + order->warmup] = checksums_of(subject);
        if (called->returned != MPI_SUCCESS) {
            /* Not answered here: others may never return, and the results of this rank must be
             * written before it waits for them. */
            calls->is_expected = i + 1 < order->repetitions;
            break;
        }
    }
    return failed;
}

/* The calls of a sequence, each with its own communicator and buffers. The last one is the case's
 * own. */
static int call_in_sequence(struct subject *subject, const struct collective *collective,
                            const struct loaded *loaded, struct calls *calls)
{
    struct called *const called = &calls->called;
    const char *const sequence = subject->order->sequence;
    const int they_meet = ranks_meet_in_sequence(sequence);
    for (int i = 0; i <= calls->earlier_count; i++) {
        const int is_own = i == calls->earlier_count;
        struct subject *const now = is_own ? subject : &calls->earlier[i];
        if (i > 0 && they_meet && any_rank(subject->parent, 0))
            break;
        if (communicator_in_sequence(sequence, i, subject, now) != 0)
            return 1;
        if (i == 0 || they_meet)
            MPI_Barrier(subject->parent);
        if (now->comm == MPI_COMM_NULL)
            continue;
        if (loaded->pause != NULL)
            loaded->pause(0);
        called->spans[i].begin_ns = clock_ns();
        called->returned = call_and_keep_file(now, collective, loaded);
        called->spans[i].end_ns = clock_ns();
        if (loaded->pause != NULL && !is_own)
            loaded->pause(1);
        if (!is_own)
            called->checksums[i] = checksums_of(now);
        if (called->returned != MPI_SUCCESS) {
            calls->is_expected = !is_own && they_meet;
            break;
        }
    }
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

static int begin_evidence(const struct subject *subject, const struct collective *collective,
                          const char *directory, struct access **access)
{
    char matrix[PATH_MAX], path[PATH_MAX];
    if (!collective->has_file)
        return harness_fail("requests, cold: a %s reads no file", collective->name);
    name_matrix(matrix, subject, directory);
    return open_access(access, subject, matrix, name_file(path, subject, directory, "io"));
}

/* The place given in the case, or where this process really is. */
static int take_place(const struct subject *subject, const struct loaded *loaded)
{
    struct mpilab_place place;
    if (*subject->order->places == '\0') {
        loaded->pretend(NULL);
        return 0;
    }
    const int failed = place_of_rank(subject->order->places, subject->rank, &place);
    if (!failed)
        loaded->pretend(&place);
    return failed;
}

static void for_guards(void change(const struct region *), struct subject *subject,
                       struct calls *calls)
{
    change(&subject->sent);
    change(&subject->received);
    for (int i = 0; i < calls->earlier_count; i++)
        if (calls->earlier[i].sent.memory != NULL) {
            change(&calls->earlier[i].sent);
            change(&calls->earlier[i].received);
        }
}

/* Call the kernel as often as the case says. */
static int call_kernel(struct subject *subject, const struct collective *collective,
                       const struct loaded *loaded, struct calls *calls)
{
    for_guards(forbid_guards, subject, calls);
    const int failed = calls->earlier_count > 0
                           ? call_in_sequence(subject, collective, loaded, calls)
                           : call_repeatedly(subject, collective, loaded, calls);
    for_guards(allow_guards, subject, calls);
    return failed;
}

/* One call whose messages are counted below MPI. */
static int monitor(struct subject *subject, const struct collective *collective,
                   const struct loaded *loaded, const char *directory)
{
    char path[PATH_MAX];
    if (fail_together(subject->parent, begin_monitoring(subject)) != 0)
        return 1;
    MPI_Barrier(subject->parent);
    int failed = start_counting();
    const int err = call_and_keep_file(subject, collective, loaded);
    if (end_monitoring(subject, name_file(path, subject, directory, "mon")) != 0)
        failed = 1;
    if (err != MPI_SUCCESS)
        failed = harness_fail("the call to be monitored returned the error %d", err);
    return fail_together(subject->parent, failed);
}

/* The buffers of one call, and what it sends to and receives from each rank. */
static int prepare_call(struct subject *subject, const struct collective *collective, long call)
{
    subject->blocks = collective->blocks(subject);
    return (collective->make_exchange != NULL && collective->make_exchange(subject) != 0) ||
           prepare_buffers(subject, call) != 0;
}

/* The calls of a sequence before the case's own one: number i has the contents of call
 * i + 1, because those of call 0 are the case's own. */
static int prepare_earlier(const struct subject *subject, const struct collective *collective,
                           struct calls *calls)
{
    const struct mpilab_case *order = subject->order;
    const int all = calls_in_sequence(order->sequence);
    if (all == 0)
        return harness_fail("sequence=%s: unknown; again, duplicate, parts and roots are known",
                            order->sequence);
    calls->earlier_count = all - 1;
    for (int i = 0; i < calls->earlier_count; i++) {
        struct subject *const earlier = &calls->earlier[i];
        *earlier = *subject;
        earlier->comm = MPI_COMM_NULL;
        earlier->size = size_in_sequence(order->sequence, i, subject->size);
        earlier->root = root_in_sequence(order->sequence, i, subject->root, earlier->size);
        if (earlier->rank < earlier->size && prepare_call(earlier, collective, i + 1) != 0)
            return 1;
    }
    return 0;
}

static void free_earlier(struct subject *subject, struct calls *calls)
{
    for (int i = 0; i < calls->earlier_count; i++) {
        struct subject *const earlier = &calls->earlier[i];
        if (earlier->comm != MPI_COMM_NULL && earlier->comm != subject->comm)
            MPI_Comm_free(&earlier->comm);
        free_exchange(&earlier->exchange);
        free_region(&earlier->sent);
        free_region(&earlier->received);
    }
}

/* Everything that a call needs except the file. */
static int prepare(struct subject *subject, const struct collective *collective,
                   const struct loaded *loaded, struct calls *calls)
{
    const struct mpilab_case *order = subject->order;
    if (take_place(subject, loaded) != 0)
        return 1;
    if (loaded->open_jail != NULL)
        loaded->open_jail();
    make_regions_by(loaded->allocate, loaded->release);
    if (prepare_earlier(subject, collective, calls) != 0 ||
        prepare_call(subject, collective, 0) != 0)
        return 1;
    struct called *const called = &calls->called;
    called->timed = order->repetitions + calls->earlier_count;
    called->checked = order->fresh ? order->warmup + order->repetitions : calls->earlier_count;
    called->spans = calloc((size_t)called->timed, sizeof *called->spans);
    if (called->checked > 0)
        called->checksums = calloc((size_t)called->checked, sizeof *called->checksums);
    return called->spans == NULL || (called->checked > 0 && called->checksums == NULL)
               ? harness_fail("out of memory: %ld calls", called->timed)
               : 0;
}

/* Open everything that records the calls, make them, and close it. No call is made if any rank has
 * `failed`. */
static int call_and_record(struct subject *subject, const struct collective *collective,
                           const struct loaded *loaded, const char *directory, struct calls *calls,
                           int failed)
{
    const struct mpilab_case *order = subject->order;
    const int keeps_files = order->record || order->dump;
    char path[PATH_MAX];
    struct printing printing;
    int is_printing = 0;
    if (!failed)
        failed = begin_recording(subject, loaded, directory);
    if (!failed && (order->requests || order->cold))
        failed = begin_evidence(subject, collective, directory, &calls->access);
    if (!failed && keeps_files) {
        failed = begin_printing(&printing, name_file(path, subject, directory, "txt"));
        is_printing = !failed;
    }
    if (!failed && order->memory > 0)
        failed = limit_memory(order->memory);
    failed = fail_together(subject->parent, failed);
    if (!failed)
        failed = call_kernel(subject, collective, loaded, calls);
    unlimit_memory();
    loaded->finish();
    loaded->strict(0);
    if (is_printing)
        end_printing(&printing);
    if (close_access(calls->access) != 0)
        failed = 1;
    if (!failed)
        failed =
            write_output(name_file(path, subject, directory, "out"), subject,
                         loaded->most_staged == NULL ? 0 : *loaded->most_staged, &calls->called);
    if (calls->is_expected)
        any_rank(subject->parent, 1);
    return failed;
}

static int run(struct subject *subject, struct mpilab_case *order,
               const struct collective *collective, const struct loaded *loaded,
               const char *directory)
{
    struct calls calls = {.called = {.returned = MPI_SUCCESS}};
    int has_file = 0;
    int failed = prepare(subject, collective, loaded, &calls);
    if (collective->has_file || order->monitor) /* all ranks do these together, or none */
        failed = fail_together(subject->parent, failed);
    if (!failed && collective->has_file) {
        failed = make_file(subject, directory);
        has_file = !failed;
    }
    if (loaded->lent_file != NULL)
        *loaded->lent_file = subject->file;
    /* Everything that depends on the seed has been generated. A kernel that found it, in memory
     * that is not its own, could fill its buffers without a message. */
    forget(&order->seed, sizeof order->seed);
    forget_stack();
    if (!failed && order->monitor)
        failed = monitor(subject, collective, loaded, directory);
    failed = call_and_record(subject, collective, loaded, directory, &calls, failed);
    free(calls.called.spans);
    free(calls.called.checksums);
    free_earlier(subject, &calls);
    if (has_file && free_file(subject, directory) != 0)
        failed = 1;
    return failed;
}

int mpilab_run_case(MPI_Comm comm, const char *line, const char *library, const char *function,
                    const char *directory)
{
    static struct mpilab_case order; /* large: it holds the places of all ranks */
    return parse_case(line, &order) != 0 ||
           run_ordered_case(comm, &order, library, function, directory) != 0;
}

int run_ordered_case(MPI_Comm comm, struct mpilab_case *order, const char *library,
                     const char *function, const char *directory)
{
    struct loaded loaded;
    struct subject subject = {
        .order = order, .root = order->root, .parent = comm, .file = MPI_FILE_NULL};
    if (load(library, *order->function ? order->function : function, &loaded) != 0)
        return 1;
    const struct collective *collective = find_collective(order->collective);
    if (collective == NULL || make_datatypes(order->datatype, &subject.types) != 0 ||
        make_operation(order->op, order->datatype, &subject.op) != 0 ||
        (order->openmpi >= 0 && choose_openmpi(order) != 0) || use_han(order->han) != 0)
        return 1;
    *loaded.tuning = (struct mpilab_tuning){
        order->segment_bytes, order->fanout,       order->radix,       order->remap,
        order->budget_bytes,  order->buffer_bytes, order->aggregators,
    };
    if (loaded.most_staged != NULL)
        *loaded.most_staged = 0;

    /* A separate communicator, so that a leftover message cannot reach the next case. It returns
     * errors to the kernel, which has to pass them on. */
    int rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_split(comm, 0, order->reversed ? -rank : rank, &subject.comm);
    MPI_Comm_set_errhandler(subject.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(subject.comm, &subject.rank);
    MPI_Comm_size(subject.comm, &subject.size);
    subject.kernel = loaded.kernel;

    const int failed = run(&subject, order, collective, &loaded, directory);

    /* What the kernel has cached on its communicator is freed with it, and is not a leak: so the
     * recorder closes afterward. */
    MPI_Comm_free(&subject.comm);
    loaded.close();
    free_datatypes(&subject.types);
    free_operation(&subject.op);
    free_exchange(&subject.exchange);
    free(subject.later);
    free_region(&subject.sent);
    free_region(&subject.received);
    return failed;
}
