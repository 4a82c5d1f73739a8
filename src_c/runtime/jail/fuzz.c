/* Calls the shim with random arguments, in the place of a kernel (tools/fuzz_jail.py).
 *
 *   fuzz SEED FIRST CALLS FILE LOG [SKIPPED...]
 *
 * makes the calls FIRST to CALLS of the sequence that belongs to SEED, without those that are
 * SKIPPED, and notes each in LOG before it is made. FILE is the file that the kernel is lent.
 *
 * The shim is included, not linked: with its tables in view, arguments are often valid, and what
 * would block can be left out. Each call has random numbers of its own, so that the others remain
 * the same when one is left out. A trap ends only the call, here, if it can; tools/fuzz_jail.py
 * makes the sequence again without the calls that trapped, until none does. All ranks make the
 * same calls, mostly with the same arguments: collectives meet.
 *
 * It is built twice: for Open MPI, and for SMPI (MPILAB_SIMULATED), where all ranks share a process.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fopencookie, dladdr */
#endif
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
/* What the shim prints for a kernel is counted, not shown; where it gives up because SMPI lacks a
 * call, only that call ends. */
static FILE *sink;
static _Noreturn void give_up(void);
#undef stdout
#undef stderr
#define stdout             sink
#define stderr             sink
#define abort              give_up
#define recorder_note_trap fuzz_note_trap
#include "settings.h"
#include "shim.c"
#undef recorder_note_trap
#undef abort
#undef stderr
#undef stdout
#include <execinfo.h>
#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <sys/time.h>
#include <time.h>

#if MPILAB_WASM2C <= 32
#define CALLED(name)  Z_mpiZ_##name
#define PRINTED(name) Z_wasi_snapshot_preview1Z_##name
#else
#define CALLED(name)  w2c_mpi_##name
#define PRINTED(name) w2c_wasi__snapshot__preview1_##name
#endif

enum {
    OWN_PAGES = 64, /* of the memory */
    SCRATCH = PAGE, /* for arrays, handles and statuses: one page */
    BUFFERS = 2 * PAGE,
    MOST_ARGUMENTS = 16,
    LISTED = 16, /* elements of an array */
    KEYS = 6,
    NESTED = 1 << 20, /* a call that a callback makes: its index begins here */
    STALLED_SECONDS = 2
};
/* How the process ends, beside 0; tools/fuzz_jail.py has the same numbers. */
enum { BLOCKED = 75, STALLED = 76, ENDED_INSIDE = 77, SANITIZED = 99 };

/* What may keep a call from returning. */
enum blocks { NEVER, MESSAGE, ALL_REQUESTS, ANY_REQUEST, RECEIVER, OTHERS, ENDS };

struct fuzzed {
    const char *name, *roles; /* two letters for each parameter: see `argument` */
    enum blocks blocks;
    int weight;
    u32 (*call)(const u64 *a);
};

#define FUZZED(name, from, roles, blocks, weight, ...) \
    static u32 fuzz_##name(const u64 *a)               \
    {                                                  \
        (void)a;                                       \
        return (u32)from(name)(NULL, ##__VA_ARGS__);   \
    }
#define FUZZED_VOID(name, from, roles, blocks, weight, ...) \
    static u32 fuzz_##name(const u64 *a)                    \
    {                                                       \
        (void)a;                                            \
        from(name)(NULL, ##__VA_ARGS__);                    \
        return MPI_SUCCESS;                                 \
    }
#include "fuzz_calls.inc"
#undef FUZZED
#undef FUZZED_VOID
static const struct fuzzed all_calls[] = {
#define FUZZED(name, from, roles, blocks, weight, ...) {#name, roles, blocks, weight, fuzz_##name},
#define FUZZED_VOID                                    FUZZED
#include "fuzz_calls.inc"
};
#undef FUZZED
#undef FUZZED_VOID
enum { CALL_COUNT = sizeof all_calls / sizeof *all_calls };

static int rank, ranks, log_file;
static u64 seed;
static wasm_rt_memory_t own;
static jmp_buf refused;
static int is_trapping; /* a trap returns to `refused` */
static int nesting;     /* callbacks that run */
static char last_trap[200];

/* --- random numbers (splitmix64) */

struct random {
    u64 state;
};

static u64 next(struct random *of)
{
    u64 z = of->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static struct random random_of(u64 index, u64 who)
{
    struct random made = {seed * 0x2545f4914f6cdd1du + index * 0x9e3779b97f4a7c15u + who};
    next(&made);
    return made;
}

static u32 below(struct random *of, u32 limit)
{
    return (u32)(next(of) % limit);
}

static int one_in(struct random *of, u32 chances)
{
    return below(of, chances) == 0;
}

/* --- traps, and what does not return */

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    char line[1000];
    va_list more;
    va_start(more, format);
    const int bytes = vsnprintf(line, sizeof line, format, more);
    va_end(more);
    if (write(log_file, line, bytes < (int)sizeof line ? (size_t)bytes : sizeof line - 1) < 0)
        abort();
}

int fuzz_note_trap(const char *where, const char *why)
{
    snprintf(last_trap, sizeof last_trap, "%s: %s", where, why);
    /* Nothing may follow here, or MPI would write into memory that it has freed. */
    const int is_last = strcmp(why, UNSETTLED) == 0;
    if (is_trapping && nesting == 0 && !is_last)
        longjmp(refused, 1);
    note(" ! %s%s\nend\n", last_trap, is_last ? "" : ", in a callback");
    _exit(ENDED_INSIDE);
}

static _Noreturn void give_up(void)
{
    fuzz_note_trap("the shim", "MPI has no such call here");
    _exit(ENDED_INSIDE); /* not reached */
}

/* Whether MPI runs, as opposed to the shim or the recorder: which of them is innermost. */
static int is_in_mpi(void *const *at, int depth)
{
    Dl_info own, its;
    int is_before_signal = 1;
    dladdr((void *)(uintptr_t)is_in_mpi, &own);
    for (int i = 0; i < depth; i++) {
        if (dladdr(at[i], &its) == 0 || its.dli_fname == NULL)
            continue;
        const int is_own = its.dli_fbase == own.dli_fbase;
        if (is_before_signal) { /* the handler's own frames */
            is_before_signal = !is_own;
            continue;
        }
        if (is_own)
            return 0;
        if (strstr(its.dli_fname, "libmpi") != NULL ||
            strstr(its.dli_fname, "libopen-pal") != NULL ||
            strstr(its.dli_fname, "libsimgrid") != NULL)
            return 1;
    }
    return 0;
}

#ifdef MPILAB_SIMULATED
/* Each rank is a thread, and only one of them runs: what counts is the processor time of its own.
 * Ranks that wait forever are found by SimGrid itself. */
static void allow_seconds(int seconds)
{
    static timer_t timer;
    static int is_made;
    struct sigevent to = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    to._sigev_un._tid = gettid();
    if (!is_made && timer_create(CLOCK_THREAD_CPUTIME_ID, &to, &timer) != 0)
        abort();
    is_made = 1;
    const struct itimerspec all = {{0, 0}, {seconds, 0}};
    timer_settime(timer, 0, &all, NULL);
}

static int needs_more_time(void)
{
    return 0;
}
#else
static clock_t call_began; /* processor time */
static void allow_seconds(int seconds)
{
    const struct itimerval all = {{0, 0}, {seconds, 0}};
    call_began = clock();
    setitimer(ITIMER_REAL, &all, NULL);
}

/* It must not wait, but it may get no processor. */
static int needs_more_time(void)
{
    const struct itimerval more = {{0, 0}, {STALLED_SECONDS, 0}};
    if (clock() - call_began >= STALLED_SECONDS * CLOCKS_PER_SEC)
        return 0;
    setitimer(ITIMER_REAL, &more, NULL);
    return 1;
}
#endif

/* In MPI, it waits for what does not come. */
static void stalled(int number)
{
    void *at[40];
    const int depth = backtrace(at, 40), is_waiting = is_in_mpi(at, depth);
    (void)number;
    if (!is_waiting && needs_more_time())
        return;
    note("# no return\n");
    backtrace_symbols_fd(at, depth, log_file);
    _exit(is_waiting ? BLOCKED : STALLED);
}

/* --- what comes out of the jail */

static u64 came_out; /* bytes */

static ssize_t count_bytes(void *unused, const char *from, size_t bytes)
{
    (void)unused, (void)from;
    came_out += bytes;
    return (ssize_t)bytes;
}

/* `fd_write` says how many bytes it wrote: that many came out. */
static void check_output(const u64 *arguments, u64 before)
{
    u32 said = 0;
    memcpy(&said, memory->data + arguments[3], 4);
    if (said == came_out - before)
        return;
    fprintf(stderr, "fuzz: runtime error: fd_write says %u bytes, and wrote %llu\n", said,
            (unsigned long long)(came_out - before));
    _exit(SANITIZED);
}

/* AddressSanitizer calls it before it reports. Where the fault is, only its report says. */
void __asan_on_error(void);
void __asan_on_error(void)
{
    if (jail_fault_at_null != NULL)
        note("\n# a fault at NULL is a trap here\n");
}

/* --- arguments */

static u32 scratch; /* where the next array begins */

static u32 place(u32 bytes)
{
    const u32 at = SCRATCH + scratch;
    scratch = (scratch + bytes + 7) & ~7u;
    if (scratch > PAGE - 2048)
        scratch = 0;
    return at;
}

static u32 wild_address(struct random *of)
{
    const u32 end = (u32)memory->size;
    const u32 all[] = {0,       1,           NULL_ZONE - 4, end - 4, end - 1,    end,
                       end + 8, 0x7ffffff0u, (u32)-1,       (u32)-4, 0x80000000u};
    return all[below(of, sizeof all / sizeof *all)];
}

static int wild_number(struct random *of)
{
    static const int all[] = {-1,      -2,      -1000, INT32_MIN,         INT32_MAX,  1 << 30,
                              1 << 28, 1 << 20, 65536, INT32_MAX / 2 + 1, 4096 * 1024};
    return all[below(of, sizeof all / sizeof *all)];
}

static int64_t wild_distance(struct random *of)
{
    static const int64_t all[] = {INT64_MIN, INT64_MAX,    -(1LL << 31),   1LL << 31,
                                  1LL << 33, 1LL << 40,    -(1LL << 40),   1LL << 46,
                                  1LL << 59, -(1LL << 59), 1LL << 60,      -(1LL << 60),
                                  1LL << 62, -(1LL << 62), (1LL << 60) - 1};
    return all[below(of, sizeof all / sizeof *all)];
}

static int small_number(struct random *of)
{
    return one_in(of, 40)   ? wild_number(of)
           : one_in(of, 12) ? -(int)below(of, 9)
                            : (int)below(of, 6);
}

static int count_of_elements(struct random *of)
{
    const u32 kind = below(of, 100);
    return kind < 3    ? wild_number(of)
           : kind < 12 ? 0
           : kind < 65 ? 1 + (int)below(of, 9)
           : kind < 85 ? (int)below(of, 3000)
                       : (int)below(of, 150000);
}

static int64_t distance(struct random *of)
{
    return one_in(of, 25)  ? wild_distance(of)
           : one_in(of, 3) ? (int64_t)below(of, 300) - 150
                           : ((int64_t)below(of, 64) - 8) * 8;
}

static enum kind kind_of(char letter)
{
    static const char letters[] = "CDFGIMOR"; /* as in `enum kind` */
    return (enum kind)(strchr(letters, letter) - letters);
}

/* Mostly one that is valid. */
static u32 any_handle(struct random *of, enum kind kind)
{
    const struct table *const table = &tables[kind];
    if (one_in(of, 60))
        return below(of, 3) == 0 ? (u32)next(of) : below(of, table->count + 3);
    for (int tries = 0; tries < 8 && table->count > 1; tries++) {
        /* New ones more often. */
        const u32 at = one_in(of, 2)
                           ? 1 + below(of, table->count - 1)
                           : table->count - 1 - below(of, table->count > 8 ? 8 : table->count - 1);
        if (at < table->count && table->all[at].native != NULL)
            return at;
    }
    return 0;
}

static u32 put_number(u32 value)
{
    const u32 at = place(4);
    memcpy(memory->data + at, &value, 4);
    return at;
}

static u32 put_array(struct random *of, char what)
{
    const u32 at = place(LISTED * 8);
    for (int i = 0; i < LISTED; i++) {
        const int number = what == 'd'   ? (int)below(of, 5)
                           : what == 'c' ? (one_in(of, 30)   ? wild_number(of)
                                            : one_in(of, 20) ? (int)below(of, 60000)
                                                             : (int)below(of, 9))
                                         : small_number(of);
        const int64_t wide = distance(of);
        if (what == 'w')
            memcpy(memory->data + at + 8 * (u32)i, &wide, 8);
        else
            memcpy(memory->data + at + 4 * (u32)i, &number, 4);
    }
    return at;
}

static u32 put_handles(struct random *of, enum kind kind)
{
    const u32 at = place(LISTED * 4);
    u32 numbers[LISTED];
    for (int i = 0; i < LISTED; i++) {
        numbers[i] = one_in(of, 5) && kind == H_REQUEST ? 0 : any_handle(of, kind);
        for (int j = 0; j < i && kind == H_REQUEST && !one_in(of, 20); j++)
            if (numbers[j] == numbers[i])
                numbers[i] = 0;
    }
    memcpy(memory->data + at, numbers, sizeof numbers);
    return at;
}

static u32 put_words(struct random *of, int is_first)
{
    static const char *const all[] = {
        "native", "native", "native",     "cb_nodes", "cb_buffer_size",
        "4096",   "-1",     "external32", "",         "romio_no_indep_rw",
        "true"};
    const char *const one = all[is_first ? 0 : below(of, sizeof all / sizeof *all)];
    const u32 at = place(64);
    memcpy(memory->data + at, one, strlen(one) + 1);
    if (!one_in(of, 40))
        return at;
    memset(memory->data + memory->size - 16, 'x', 16);
    return (u32)memory->size - 16;
}

/* Pieces of a text to print, each an address and a length: at the ends of the memory, beyond them,
 * and so that address and length together wrap around 2^32. */
static u32 put_pieces(struct random *of)
{
    const u32 end = (u32)memory->size;
    u32 pieces[2 * LISTED];
    for (int i = 0; i < LISTED; i++) {
        const u32 bytes = one_in(of, 4) ? 0 : one_in(of, 20) ? below(of, 1 << 20) : below(of, 300);
        const u32 kind = below(of, 100);
        const u32 at = kind < 4    ? wild_address(of)
                       : kind < 20 ? end - bytes
                       : kind < 22 ? end - bytes + 1
                       : kind < 30 ? NULL_ZONE
                                   : BUFFERS + below(of, 1 << 20);
        pieces[2 * i] = at;
        pieces[2 * i + 1] = one_in(of, 60)   ? (u32)wild_number(of)
                            : one_in(of, 60) ? below(of, 16) - at
                                             : bytes;
    }
    const u32 kind = below(of, 40);
    const u32 at = kind < 4    ? end - (u32)sizeof pieces
                   : kind == 4 ? (u32)0 - 8 * (1 + below(of, 4))
                   : kind == 5 ? wild_address(of)
                               : place(sizeof pieces);
    if (at >= NULL_ZONE && (u64)at + sizeof pieces <= end)
        memcpy(memory->data + at, pieces, sizeof pieces);
    return at;
}

static u32 put_a_status(struct random *of)
{
    struct inside_status made = {(int)below(of, 3), (int)below(of, 3), 0, (int)below(of, 2),
                                 one_in(of, 10) ? distance(of) : (int64_t)below(of, 100000)};
    const u32 at = place(sizeof made);
    memcpy(memory->data + at, &made, sizeof made);
    return at;
}

/* What all arguments of a call share. */
struct call {
    const struct fuzzed *of;
    struct random same, mine; /* on all ranks, and on this one */
    int step, tag;
    u64 latest; /* argument */
    u64 arguments[MOST_ARGUMENTS];
};

static u64 argument(struct call *call, char role, char what)
{
    struct random *const of = &call->same;
    struct random *const perhaps_mine = one_in(of, 12) ? &call->mine : of;
    switch (role) {
    case 'h': /* a handle */
        return any_handle(of, kind_of(what));
    case 'e': /* the same as the argument before, or another one */
        return one_in(of, 3) ? any_handle(of, kind_of(what)) : call->latest;
    case 'o': /* the place for a new one */
    case 'u': /* for a number, a wide one, or a text */
        return one_in(of, 80) ? wild_address(of) : place(role == 'u' && what == 'c' ? 512 : 8);
    case 'm': /* the place of one that the call changes */
        return one_in(of, 80) ? wild_address(of) : put_number(any_handle(of, kind_of(what)));
    case 'a': /* an array of handles */
        return one_in(of, 60) ? wild_address(of) : put_handles(of, kind_of(what));
    case 'v': /* an array of numbers */
        return one_in(of, 60) ? wild_address(of) : put_array(perhaps_mine, what);
    case 'd': /* a file descriptor: mostly one that is open for printing */
        return one_in(of, 10) ? (u32)wild_number(of) : below(of, one_in(of, 4) ? 6 : 3);
    case 'w': /* pieces of a text */
        return put_pieces(of);
    case 'n':
        if (what == 'w') /* pieces: often more than are in the array */
            return one_in(of, 25)   ? (u32)wild_number(of)
                   : one_in(of, 12) ? below(of, 3000)
                                    : below(of, LISTED + 1);
        return what == 'e' ? (u32)count_of_elements(perhaps_mine)
               : what == 'l'
                   ? (one_in(of, 40) ? (u32)wild_number(of) : below(of, what == 'l' ? 6 : 4))
                   : (u32)small_number(of);
    case 'b': /* a buffer: when all else is known */
        return 0;
    case 'r': /* another rank: that of a distance, so that sends and receives meet */
        if (one_in(of, 40))
            return (u32)wild_number(of);
        return one_in(of, 20) ? (u32)MPI_PROC_NULL
               : what == 's'  ? (one_in(of, 6) ? (u32)MPI_ANY_SOURCE
                                               : (u32)((rank - call->step + ranks) % ranks))
               : what == 'd'  ? (u32)((rank + call->step) % ranks)
                              : (u32)(call->step % ranks);
    case 't':
        return one_in(of, 40)                 ? (u32)wild_number(of)
               : what == 'r' && one_in(of, 5) ? (u32)MPI_ANY_TAG
               : one_in(of, 10)               ? below(of, 3)
                                              : (u32)call->tag;
    case 'i':
        return one_in(of, 10) ? (u32)wild_number(of) : below(of, 4);
    case 'l':
        if (what == 'p' && !one_in(of, 20))
            return below(of, 400);
        return (u64)(one_in(of, 3) ? (int64_t)below(of, 200) * 8 : distance(of));
    case 's': /* the place for statuses, or one with a status */
        return one_in(of, 60)  ? wild_address(of)
               : what == 'i'   ? put_a_status(of)
               : one_in(of, 4) ? 0
                               : place(LISTED * sizeof(struct inside_status));
    case 'x':
        return one_in(of, 60) ? wild_address(of) : put_words(of, what == 'n' && !one_in(of, 20));
    case 'k': /* a key, or its place */
        return what == 'p' ? put_number(1 + below(of, KEYS)) : 1 + below(of, KEYS);
    case 'f': /* a function */
        return one_in(of, 10) ? 0 : 1 + below(of, 1000);
    case 'p': /* the place of a position */
        return put_number(one_in(of, 20) ? (u32)wild_number(of) : below(of, 64));
    case 'q': /* the order of an array */
        return (u32)(one_in(of, 2) ? MPI_ORDER_C : one_in(of, 20) ? 7 : MPI_ORDER_FORTRAN);
    }
    abort();
}

static int is_valid(enum kind kind, u64 at)
{
    return at > 0 && at < tables[kind].count && tables[kind].all[at].native != NULL;
}

/* The datatype and the number of elements of the buffer that is parameter `at`. */
static int described(const struct call *call, int at, struct bounds *all)
{
    const char *const roles = call->of->roles;
    const int last = (int)strlen(roles) / 2;
    int64_t count = -1;
    *all = NOTHING;
    for (int i = at + 1; i < last; i++) {
        if (roles[2 * i] == 'n' && count < 0)
            count = (int)call->arguments[i];
        if (roles[2 * i] == 'v' && count < 0)
            count = 30;
        if (memcmp(roles + 2 * i, "hD", 2) != 0)
            continue;
        if (!is_valid(H_DATATYPE, call->arguments[i]) || count < 0 || count > 1 << 24)
            return 0;
        const struct bounds one = tables[H_DATATYPE].all[call->arguments[i]].bounds;
        if (one.true_low < -(1 << 24) || one.true_high > 1 << 24 || one.most_step > 1 << 24 ||
            one.least_step < -(1 << 24))
            return 0;
        add("fuzz", all, &one, 0, count);
        return 1;
    }
    return 0;
}

/* Often exactly at an end of the memory. */
static u32 buffer(struct call *call, int at)
{
    struct random *const of = &call->same;
    struct bounds all;
    const u32 end = (u32)memory->size, kind = below(of, 100);
    if (kind < 3)
        return wild_address(of);
    if (kind < 5)
        return JAIL_IN_PLACE;
    const int is_known = described(call, at, &all) && all.size > 0;
    if (is_known && all.true_high - all.true_low + BUFFERS < (int64_t)end && kind < 55) {
        const int64_t off = one_in(of, 12) ? (int64_t)below(of, 3) - 1 : 0;
        if (kind < 35)
            return (u32)((int64_t)end - all.true_high + off);
        if (kind < 40)
            return (u32)(NULL_ZONE - all.true_low + off);
        const u32 room = end - BUFFERS - (u32)(all.true_high - all.true_low);
        return (u32)((int64_t)(BUFFERS + below(of, room)) - all.true_low);
    }
    return BUFFERS + below(of, (end - BUFFERS) / 2) / 8 * 8;
}

static void prepare(struct call *call)
{
    const char *const roles = call->of->roles;
    const int count = (int)strlen(roles) / 2;
    for (int i = 0; i < count; i++)
        call->latest = call->arguments[i] = argument(call, roles[2 * i], roles[2 * i + 1]);
    for (int i = 0; i < count; i++)
        if (roles[2 * i] == 'b')
            call->arguments[i] = buffer(call, i);
}

/* --- what would block */

static u64 first_of(const struct call *call, const char *role)
{
    for (int i = 0; call->of->roles[2 * i] != '\0'; i++)
        if (memcmp(call->of->roles + 2 * i, role, strlen(role)) == 0)
            return call->arguments[i];
    return 0;
}

#ifdef MPILAB_SIMULATED
/* SMPI has no MPI_Request_get_status; it reports a deadlock at once. */
static int is_complete(u32 number)
{
    struct random turn = random_of(number, 3000);
    return !is_valid(H_REQUEST, number) || one_in(&turn, 3);
}
#else
static int is_complete(u32 number)
{
    int flag = 1;
    if (is_valid(H_REQUEST, number))
        PMPI_Request_get_status(tables[H_REQUEST].all[number].native, &flag, MPI_STATUS_IGNORE);
    return flag;
}
#endif

static int would_block(struct call *call)
{
    const u64 comm = first_of(call, "hC");
    int flag = 0;
    u32 numbers[LISTED] = {0};
    switch (call->of->blocks) {
    case NEVER:
        return 0;
    case MESSAGE: {
        const int source = (int)first_of(call, "rs"), tag = (int)first_of(call, "t");
        int size = 0;
        if (!is_valid(H_COMM, comm) || source == MPI_PROC_NULL)
            return 0;
        PMPI_Comm_size(tables[H_COMM].all[comm].native, &size);
        if (source >= size || (source < 0 && source != MPI_ANY_SOURCE) ||
            (tag < 0 && tag != MPI_ANY_TAG))
            return 0;
        for (int tries = 0; tries < 20 && !flag; tries++)
            PMPI_Iprobe(source, tag, tables[H_COMM].all[comm].native, &flag, MPI_STATUS_IGNORE);
        return !flag;
    }
    case ALL_REQUESTS:
    case ANY_REQUEST: {
        const u64 one = first_of(call, "mR"), many = first_of(call, "aR");
        const u64 at = one != 0 ? one : many;
        const int64_t most = one != 0 ? 1 : (int)first_of(call, "n");
        if (at < NULL_ZONE || at > memory->size - sizeof numbers || most < 0 || most > LISTED)
            return 0;
        memcpy(numbers, memory->data + at, sizeof numbers);
        int complete = 0, given = 0;
        for (int i = 0; i < most; i++) {
            /* A persistent one may be inactive, so that it ends no wait for any. */
            const int counts = is_valid(H_REQUEST, numbers[i]) &&
                               (call->of->blocks == ALL_REQUESTS ||
                                !tables[H_REQUEST].all[numbers[i]].is_persistent);
            given += is_valid(H_REQUEST, numbers[i]);
            complete += counts && is_complete(numbers[i]);
        }
        return call->of->blocks == ALL_REQUESTS ? complete < given : given > 0 && complete == 0;
    }
    case RECEIVER: {
        struct bounds all;
        const int is_small = described(call, 0, &all) && all.size < 2000;
        return !(is_small && strcmp(call->of->name, "MPI_Ssend") != 0) && !one_in(&call->same, 30);
    }
    case OTHERS:
        return !one_in(&call->same, 4);
    case ENDS:
        return !one_in(&call->same, 200);
    }
    return 0;
}

/* --- one call */

static const struct fuzzed *chosen(struct random *of)
{
    int all = 0;
    for (int i = 0; i < CALL_COUNT; i++)
        all += all_calls[i].weight;
    int at = (int)below(of, (u32)all);
    for (int i = 0; i < CALL_COUNT; i++)
        if ((at -= all_calls[i].weight) < 0)
            return &all_calls[i];
    abort();
}

static void note_call(const struct call *call, long index)
{
    char text[600] = "";
    int at = 0;
    for (int i = 0; call->of->roles[2 * i] != '\0'; i++) {
        const char role = call->of->roles[2 * i];
        const u64 value = call->arguments[i];
        const int is_address = strchr("oumavbsxkpw", role) != NULL;
        at += snprintf(text + at, sizeof text - (size_t)at, "%s", i > 0 ? ", " : "");
        if (is_address)
            at += snprintf(text + at, sizeof text - (size_t)at, "%#x", (u32)value);
        else if (role == 'l')
            at += snprintf(text + at, sizeof text - (size_t)at, "%lld", (long long)value);
        else
            at += snprintf(text + at, sizeof text - (size_t)at, "%d", (int)value);
        if (strchr("mavpw", role) != NULL && value >= NULL_ZONE &&
            value + LISTED * 8 < memory->size) {
            int numbers[4];
            memcpy(numbers, memory->data + value, sizeof numbers);
            at += role == 'm' || role == 'p'
                      ? snprintf(text + at, sizeof text - (size_t)at, "[%d]", numbers[0])
                      : snprintf(text + at, sizeof text - (size_t)at, "[%d %d %d %d]", numbers[0],
                                 numbers[1], numbers[2], numbers[3]);
        }
    }
    note("%ld %s(%s)", index, call->of->name, text);
}

static void make_call(long index)
{
    struct call call = {.same = random_of((u64)index, 1000),
                        .mine = random_of((u64)index, (u64)rank)};
    call.of = chosen(&call.same);
    call.step = (int)below(&call.same, 3), call.tag = (int)below(&call.same, 3);
    prepare(&call);
    if (would_block(&call))
        return;
    note_call(&call, index);
    allow_seconds(STALLED_SECONDS);
    const u64 before = came_out;
    const u32 err = call.of->call(call.arguments);
    allow_seconds(0);
    if (strcmp(call.of->name, "fd_write") == 0 && err == 0)
        check_output(call.arguments, before);
    note(" = %d\n", (int)err);
    const u32 made = (u32)first_of(&call, "oD");
    u32 number = 0;
    if (err != MPI_SUCCESS || made < NULL_ZONE || made >= memory->size || one_in(&call.same, 5))
        return;
    memcpy(&number, memory->data + made, 4);
    if (!is_valid(H_DATATYPE, number))
        return;
    CALLED(MPI_Type_commit)(NULL, made);
    const struct bounds is = tables[H_DATATYPE].all[number].bounds;
    note("# committed %u: %lld bytes in %lld to %lld, extent %lld to %lld\n", number,
         (long long)is.size, (long long)is.true_low, (long long)is.true_high,
         (long long)is.least_step, (long long)is.most_step);
}

/* A trap ends a kernel, so a datatype whose bounds trapped is never used: no call may find it. */
static void forget_datatypes_without_bounds(void)
{
    static const struct bounds nothing;
    for (u32 at = 1; at < tables[H_DATATYPE].count; at++) {
        const struct handle *const type = &tables[H_DATATYPE].all[at];
        if (type->native != NULL && !type->is_lent && !type->is_committed &&
            memcmp(&type->bounds, &nothing, sizeof nothing) == 0)
            drop(H_DATATYPE, at);
    }
}

static void make_call_or_trap(long index)
{
    if (setjmp(refused) == 0) {
        is_trapping = 1;
        make_call(index);
    } else {
        note(" ! %s\n", last_trap);
        jail_fault_at_null = NULL; /* the call that may fault there has ended */
        forget_datatypes_without_bounds();
    }
    is_trapping = 0;
    allow_seconds(0);
}

/* --- the kernel's functions that the shim calls */

int inside_stack_is_used_up(void)
{
    return 0;
}

static void make_nested_calls(u32 function)
{
    static long made;
    if (function % 3 != 0 || nesting > 2)
        return;
    nesting++;
    note("\n");
    make_call(NESTED + made++);
    nesting--;
    allow_seconds(STALLED_SECONDS);
}

u32 inside_copy(u32 function, u32 comm, u32 key, u32 extra, u32 value, u32 copy[2])
{
    (void)comm, (void)key, (void)extra;
    make_nested_calls(function);
    copy[0] = value ^ function, copy[1] = function % 3;
    return function % 7 == 0 ? (u32)MPI_ERR_OTHER : MPI_SUCCESS;
}

u32 inside_delete(u32 function, u32 comm, u32 key, u32 value, u32 extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    make_nested_calls(function);
    return function % 7 == 0 ? (u32)MPI_ERR_OTHER : MPI_SUCCESS;
}

void inside_combine(u32 function, u32 in, u32 inout, u32 count, u32 type)
{
    (void)in, (void)inout, (void)count, (void)type;
    make_nested_calls(function);
}

/* --- the run */

static void lend_all(MPI_Comm comm, MPI_File file)
{
    jail_enter();
    jail_comm(comm);
    jail_datatype(MPI_DOUBLE_INT);
    if (file != NULL)
        jail_file(file);
}

/* The kernel returns, and is called again. */
static void call_again(MPI_Comm comm, MPI_File file)
{
    if (setjmp(refused) == 0) {
        is_trapping = 1;
        jail_leave();
        lend_all(comm, file);
        note("# called again\n");
    }
    is_trapping = 0;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: fuzz SEED FIRST CALLS FILE LOG [SKIPPED...]\n");
        return 2;
    }
    seed = strtoull(argv[1], NULL, 10);
    const long first = strtol(argv[2], NULL, 10), last = strtol(argv[3], NULL, 10);
    static char skipped[1 << 20];
    for (int i = 6; i < argc; i++)
        skipped[strtol(argv[i], NULL, 10)] = 1;
    sink = fopencookie(NULL, "w", (cookie_io_functions_t){.write = count_bytes});
    if (sink == NULL)
        return 2;
    jail_settings();
    MPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", argv[5], rank);
    log_file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    void *unused[2];
    backtrace(unused, 2); /* the first call allocates: not in a signal handler */
    signal(SIGALRM, stalled);
    MPI_File file = NULL;
    MPI_Comm comm = MPI_COMM_NULL;
#ifndef MPILAB_SIMULATED
    if (PMPI_File_open(MPI_COMM_WORLD, argv[4], MPI_MODE_RDONLY, MPI_INFO_NULL, &file) !=
        MPI_SUCCESS)
        return 2;
#endif
    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    snprintf(path, sizeof path, "%s.%d.recording", argv[5], rank);
    if (mpilab_recorder_open(path, comm, 1 << 14, 0) != 0)
        return 2;
    jail_begin();
#if MPILAB_WASM2C <= 32
    wasm_rt_allocate_memory(&own, OWN_PAGES, OWN_PAGES);
#else
    wasm_rt_allocate_memory(&own, OWN_PAGES, OWN_PAGES, 0);
#endif
    /* Until the kernel says so itself: the static variables of this program are none of its own. */
    leftovers_inside(own.data, own.data + SCRATCH, own.data + SCRATCH + PAGE);
    note("# memory %#llx\n", (unsigned long long)(uintptr_t)own.data);
    lend_all(comm, file);
    for (long index = first; index < last; index++) {
        if (skipped[index])
            continue;
        make_call_or_trap(index);
        struct random turn = random_of((u64)index, 2000);
        if (one_in(&turn, 150))
            call_again(comm, file);
    }
    note("end\n");
#ifdef MPILAB_SIMULATED
    simulated_meet(MPI_COMM_WORLD); /* the process is one of all ranks */
#endif
    mpilab_recorder_close();
    _exit(0);
}
