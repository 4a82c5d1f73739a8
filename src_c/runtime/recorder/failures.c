/* How a rank ends early: by a signal, exit() or MPI_Abort. And where it is, on request.
 *
 * Signal handlers here only write words into the mapped file, walk the stack, and forward the
 * signal to its previous handler, so that the rank ends as it would have without a recorder.
 */
#define _GNU_SOURCE
#include "recorder.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

/* crash_address if no address is known: a signal that was sent, or an address that no pointer can
 * have. A null pointer is a known address. */
#define UNKNOWN_ADDRESS UINT64_MAX
#ifdef SI_KERNEL
#define SENT_BY_SYSTEM SI_KERNEL
#else
#define SENT_BY_SYSTEM 0
#endif

enum { FATAL_SIGNALS = 7, STACK_BYTES = 1 << 16 };
static const int fatal[FATAL_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
static struct sigaction before[FATAL_SIGNALS];

/* Handlers run on a separate stack: the kernel may have exhausted the usual one. */
static _Alignas(64) char handler_stack[STACK_BYTES];
static stack_t stack_before;
/* The thread that opened the recorder. */
static pthread_t thread;

static int is_watched_thread(void)
{
    return recorder_header() != NULL && pthread_equal(thread, pthread_self());
}

static uintptr_t interrupted_at(const void *context)
{
#if defined(__linux__) && defined(__x86_64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__linux__) && defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* Where a call through a wild pointer came from: the stack cannot be walked from there. */
static uintptr_t return_address(const void *context)
{
#if defined(__linux__) && defined(__x86_64__)
    return *(const uintptr_t *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
#elif defined(__linux__) && defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.regs[30];
#else
    (void)context;
    return 0;
#endif
}

static void note_signal(int number, const siginfo_t *info, const void *context)
{
    struct mpilab_header *header = recorder_header();
    if (header->signal != 0)
        return; /* the first one is the cause */
    header->signal = number;
    const uintptr_t place = interrupted_at(context);
    const uintptr_t call = recorder_call_site();
    /* If the stack is too damaged to be walked, this remains. */
    const uintptr_t nearby = call == 0 && recorder_place_is_inside(place) ? place + 1 : call;
    header->crash_site = recorder_offset(nearby);
    const uintptr_t address = (uintptr_t)info->si_addr;
    int is_wild_jump = 0;
    if (number == SIGSYS) /* what was refused, as the filter says (runtime/harness/confine.c) */
        header->crash_address = (uint64_t)info->si_errno;
    if (number == SIGSEGV || number == SIGBUS) {
        const int has_address = info->si_code > 0 && info->si_code != SENT_BY_SYSTEM;
        header->crash_address = has_address ? address : UNKNOWN_ADDRESS;
        is_wild_jump = has_address && place == address;
        if (has_address)
            recorder_note_fault(info->si_addr, context);
    }
    if (!is_wild_jump)
        header->crash_site = recorder_offset(recorder_place(place, NULL));
    else if (recorder_place_is_inside(return_address(context)))
        header->crash_site = recorder_offset(return_address(context));
}

static void on_fatal_signal(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    if (is_watched_thread())
        note_signal(number, info, context);
    for (int i = 0; i < FATAL_SIGNALS; i++)
        if (fatal[i] == number)
            sigaction(number, &before[i], NULL);
    /* A faulting instruction faults again; a signal that was sent must be sent again, and a refused
     * system call or a trap of x86-64 is not repeated. */
    if (info->si_code <= 0 || number == SIGABRT || number == SIGSYS || number == SIGTRAP)
        pthread_kill(pthread_self(), number);
    errno = error;
}

#ifdef SIGRTMIN
static void on_sample_signal(int number, siginfo_t *info, void *context)
{
    (void)info;
    const int error = errno;
    struct mpilab_header *header = recorder_header();
    if (header != NULL && !pthread_equal(thread, pthread_self())) {
        pthread_kill(thread, number);
    } else if (recorder_is_on()) {
        const uintptr_t place = recorder_place(interrupted_at(context), NULL);
        header->sample_sites[header->samples % MPILAB_SAMPLES] = recorder_offset(place);
        __atomic_store_n(&header->samples, header->samples + 1, __ATOMIC_RELEASE);
    }
    errno = error;
}
#endif

static int is_of_mpi(uintptr_t address)
{
    Dl_info there, mpi;
    return dladdr((void *)address, &there) != 0 &&
           dladdr((void *)(uintptr_t)PMPI_Abort, &mpi) != 0 && there.dli_fbase == mpi.dli_fbase;
}

static void note_exit(int status)
{
    if (!is_watched_thread())
        return;
    uintptr_t callee;
    const uintptr_t site = recorder_place(0, &callee);
    /* MPI itself calls exit() after a fatal error. */
    if (site == 0 || callee == 0 || is_of_mpi(callee))
        return;
    struct mpilab_header *header = recorder_header();
    header->crash_site = recorder_offset(site);
    header->exit_status = status;
    header->exited = 1;
}

#ifdef __GLIBC__
static void on_exit_with_status(int status, void *nothing)
{
    (void)nothing;
    note_exit(status);
}
#else
static void on_exit_of_unknown_status(void)
{
    note_exit(EXIT_FAILURE);
}
#endif

void recorder_failures_open(void)
{
    thread = pthread_self();
    const stack_t own = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    sigaltstack(&own, &stack_before);
    struct sigaction action = {.sa_sigaction = on_fatal_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_SIGNALS; i++)
        sigaction(fatal[i], &action, &before[i]);

#ifdef SIGRTMIN
    /* Never uninstalled: a request that comes too late must not end the process. */
    action.sa_sigaction = on_sample_signal;
    action.sa_flags |= SA_RESTART;
    sigaction(SIGRTMIN + MPILAB_SAMPLE_SIGNAL, &action, NULL);
#endif

    static int is_registered;
    if (!is_registered) {
#ifdef __GLIBC__
        is_registered = on_exit(on_exit_with_status, NULL) == 0;
#else
        is_registered = atexit(on_exit_of_unknown_status) == 0;
#endif
    }
}

void recorder_failures_close(void)
{
    for (int i = 0; i < FATAL_SIGNALS; i++)
        sigaction(fatal[i], &before[i], NULL);
    sigaltstack(&stack_before, NULL);
}

int MPI_Abort(MPI_Comm comm, int error)
{
    recorder_resume();
    struct mpilab_record *record = record_begin(MPILAB_Abort, 0, comm, CALL_SITE);
    record->count = error;
    return record_end(record, PMPI_Abort(comm, error));
}
