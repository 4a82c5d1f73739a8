/* How a rank ends early, in place of recorder/failures.c: by a signal, exit() or MPI_Abort; and
 * where it is, on request.
 *
 * Signals are delivered to the process, not to a rank: they concern the rank that runs at that
 * moment. For each rank, SMPI stores a pointer to the functions of that rank's own copy of this
 * file.
 */
#define _GNU_SOURCE
#include "../recorder/recorder.h"
#include <errno.h>
#include <signal.h>
#include <simgrid/actor.h>
#include <stdlib.h>
#include <ucontext.h>

#define UNKNOWN_ADDRESS UINT64_MAX

enum { FATAL_SIGNALS = 6, STACK_BYTES = 1 << 17, EXITED_EARLY = 97 };
static const int fatal[FATAL_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
static struct sigaction before[FATAL_SIGNALS];
/* Handlers run on a separate stack: the kernel may have exhausted the rank's. */
static _Alignas(64) char handler_stack[STACK_BYTES];

/* How one rank handles a signal. */
struct watch {
    void (*fatal)(int number, const siginfo_t *info, const void *context);
    void (*sample)(const void *context);
};

static uintptr_t interrupted_at(const void *context)
{
#if defined(__x86_64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void note_signal(int number, const siginfo_t *info, const void *context)
{
    struct mpilab_header *header = recorder_header();
    if (header == NULL || header->signal != 0)
        return; /* the first one is the cause */
    header->signal = number;
    const uintptr_t place = interrupted_at(context), call = recorder_call_site();
    /* If the stack is too damaged to be walked, this remains. */
    header->crash_site =
        recorder_offset(call == 0 && recorder_place_is_inside(place) ? place + 1 : call);
    if (number == SIGSEGV || number == SIGBUS) {
        const int has_address = info->si_code > 0 && info->si_code != SI_KERNEL;
        header->crash_address = has_address ? (uintptr_t)info->si_addr : UNKNOWN_ADDRESS;
        if (has_address)
            recorder_note_fault(info->si_addr, context);
    }
    header->crash_site = recorder_offset(recorder_place(place, NULL));
}

static void note_sample(const void *context)
{
    struct mpilab_header *header = recorder_header();
    if (!recorder_is_on())
        return;
    const uintptr_t place = recorder_place(interrupted_at(context), NULL);
    header->sample_sites[header->samples % MPILAB_SAMPLES] = recorder_offset(place);
    __atomic_store_n(&header->samples, header->samples + 1, __ATOMIC_RELEASE);
}

/* The watch of the rank that runs; NULL while SimGrid itself runs. */
static const struct watch *current_watch(void)
{
    return sg_actor_self_get_pid() == 0 ? NULL : smpi_process_get_user_data();
}

/* To the previous handler: SimGrid's, which prints something and raises the signal again, or the
 * default, which ends the process. */
static void hand_on(int number, siginfo_t *info, void *context, const struct sigaction *handler)
{
    signal(number, SIG_DFL);
    if (handler->sa_flags & SA_SIGINFO)
        handler->sa_sigaction(number, info, context);
    else if (handler->sa_handler != SIG_DFL && handler->sa_handler != SIG_IGN)
        handler->sa_handler(number);
    /* A faulting instruction faults again; a signal that was sent must be sent again, and a trap of
     * x86-64 is not repeated. */
    if (info->si_code <= 0 || number == SIGABRT || number == SIGTRAP)
        raise(number);
}

static void on_fatal_signal(int number, siginfo_t *info, void *context)
{
    const struct watch *watch = current_watch();
    if (watch != NULL)
        watch->fatal(number, info, context);
    for (int i = 0; i < FATAL_SIGNALS; i++)
        if (fatal[i] == number)
            hand_on(number, info, context, &before[i]);
}

static void on_sample_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    const int error = errno;
    const struct watch *watch = current_watch();
    if (watch != NULL)
        watch->sample(context);
    errno = error;
}

/* The harness lets no rank call the kernel before all have opened their recorders, so one rank can
 * do this for the whole process; it lasts until the process ends. */
static void install_handlers(void)
{
    const stack_t own = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_sigaction = on_fatal_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_SIGNALS; i++)
        sigaction(fatal[i], &action, &before[i]);
    action.sa_sigaction = on_sample_signal;
    action.sa_flags |= SA_RESTART;
    sigaction(SIGRTMIN + MPILAB_SAMPLE_SIGNAL, &action, NULL);
}

void recorder_failures_open(void)
{
    static const struct watch own = {note_signal, note_sample};
    static int is_installed;
    smpi_process_set_user_data((void *)(uintptr_t)&own);
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && !is_installed) {
        is_installed = 1;
        install_handlers();
    }
}

void recorder_failures_close(void)
{
    smpi_process_set_user_data(NULL);
}

/* Ends all ranks, as mpirun does when a rank exits without MPI_Finalize. */
void simulated_exit(int status)
{
    struct mpilab_header *header = recorder_header();
    if (recorder_is_on()) {
        header->crash_site = recorder_offset(CALL_SITE);
        header->exit_status = status;
        header->exited = 1;
    }
    _exit(status == 0 ? EXITED_EARLY : status);
}

int MPI_Abort(MPI_Comm comm, int error)
{
    recorder_resume();
    struct mpilab_record *record = record_begin(MPILAB_Abort, 0, comm, CALL_SITE);
    record->count = error;
    return record_end(record, PMPI_Abort(comm, error));
}
