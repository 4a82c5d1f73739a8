/* Confine a rank that runs a graded answer: what the answer's code may ask of the operating system,
 * whatever addresses it computes.
 *
 * Files: all but the files of this run are hidden in the grader's work folder (Landlock), and so are
 * the memory and the descriptors of processes that are not confined. This is done before MPI_Init,
 * because it applies to the calling thread and those that it starts.
 *
 * System calls: no processes, programs, or signals to others (seccomp). This is done before the
 * kernel's library is loaded, because MPI_Init needs some of them. A refused call raises SIGSYS,
 * which the recorder notes (runtime/recorder/failures.c).
 */
#define _GNU_SOURCE
#include "harness.h"
#include <errno.h>
#include <string.h>

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/landlock.h>)
#define HAS_LANDLOCK
#endif
#if defined(__x86_64__) || defined(__aarch64__)
#define HAS_SECCOMP
#endif
#endif

#ifdef __linux__
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* An old system lacks what it does not know; then the rest still holds, and the grader says so
 * (mpilab/grading/sandbox.py). */
#ifdef __linux__
static int is_lacking(int error)
{
    return error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}
#endif

#ifdef HAS_LANDLOCK
#include <linux/landlock.h>

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* Rights on files alone, those that this system knows, and those on the files of the run: without
 * links and pipes, which the grader would follow or wait for. */
static const uint64_t of_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                 LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;
static const uint64_t of_special = LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                   LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                   LANDLOCK_ACCESS_FS_MAKE_BLOCK;

static uint64_t known_rights(long version)
{
    const uint64_t first = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
    return first | (version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
           (version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

/* A path that cannot be opened needs no right. */
static int allow(int rules, const char *path, uint64_t rights)
{
    struct stat about;
    const int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return 0;
    const int is_folder = fstat(place, &about) == 0 && S_ISDIR(about.st_mode);
    const struct landlock_path_beneath_attr rule = {
        .allowed_access = is_folder ? rights : rights & of_files,
        .parent_fd = place,
    };
    const int failed =
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0;
    const int error = errno;
    close(place);
    return failed ? harness_fail("%s: cannot be allowed: %s", path, strerror(error)) : 0;
}

/* Allow everything in the folders above `hidden`, but not the way to it. */
static int allow_all_around(int rules, const char *hidden, uint64_t rights)
{
    char folder[PATH_MAX], path[2 * PATH_MAX];
    int failed = 0;
    for (const char *rest = hidden; rest != NULL && *rest == '/' && !failed;
         rest = strchr(rest + 1, '/')) {
        const size_t name = strcspn(rest + 1, "/");
        snprintf(folder, sizeof folder, "%.*s/", (int)(rest - hidden), hidden);
        DIR *const listing = opendir(folder);
        for (struct dirent *entry; listing != NULL && !failed && (entry = readdir(listing));) {
            const int is_way =
                strlen(entry->d_name) == name && strncmp(entry->d_name, rest + 1, name) == 0;
            if (is_way || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            snprintf(path, sizeof path, "%s%s", folder, entry->d_name);
            failed = allow(rules, path, rights);
        }
        if (listing != NULL)
            closedir(listing);
    }
    return failed;
}

int confine_files(const char *hidden, const char *library, const char *directory)
{
    const long version =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 0)
        return is_lacking(errno) ? 0 : harness_fail("Landlock: %s", strerror(errno));
    const uint64_t rights = known_rights(version);
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = rights};
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (rules < 0)
        return harness_fail("Landlock: %s", strerror(errno));
    int failed = allow_all_around(rules, hidden, rights) ||
                 allow(rules, library, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE) ||
                 allow(rules, directory, rights & ~of_special);
    if (!failed && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                    syscall(SYS_landlock_restrict_self, rules, 0) != 0))
        failed = harness_fail("Landlock: %s", strerror(errno));
    close(rules);
    return failed;
}
#else
int confine_files(const char *hidden, const char *library, const char *directory)
{
    (void)hidden, (void)library, (void)directory;
    return 0;
}
#endif

#ifdef HAS_SECCOMP
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define OTHER_ABI    0x40000000u /* x32 has its own numbers, from this one on */
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define OTHER_ABI    0xffffffffu
#endif

/* What a refused call does. mpilab/diagnosis/crash.py (REFUSED) has the words: the number reaches
 * it as the crash_address of the recording. */
enum refusal { PROCESS = 1, PROGRAM, SIGNAL, MEMORY, SYSTEM };

static const struct {
    int number;
    enum refusal refusal;
} refused[] = {
#ifdef SYS_fork
    {SYS_fork, PROCESS},
    {SYS_vfork, PROCESS},
#endif
    {SYS_execve, PROGRAM},
    {SYS_execveat, PROGRAM},
    {SYS_kill, SIGNAL},
    {SYS_tkill, SIGNAL},
    {SYS_rt_sigqueueinfo, SIGNAL},
#ifdef SYS_pidfd_send_signal
    {SYS_pidfd_send_signal, SIGNAL},
#endif
#ifdef SYS_pidfd_open
    {SYS_pidfd_open, MEMORY},
#endif
#ifdef SYS_pidfd_getfd
    {SYS_pidfd_getfd, MEMORY},
#endif
    {SYS_ptrace, MEMORY},
    {SYS_process_vm_readv, MEMORY},
    {SYS_process_vm_writev, MEMORY},
    {SYS_unshare, SYSTEM},
    {SYS_setns, SYSTEM},
    {SYS_mount, SYSTEM},
    {SYS_umount2, SYSTEM},
    {SYS_pivot_root, SYSTEM},
    {SYS_chroot, SYSTEM},
#ifdef SYS_open_tree
    {SYS_open_tree, SYSTEM},
    {SYS_move_mount, SYSTEM},
    {SYS_fsopen, SYSTEM},
    {SYS_fspick, SYSTEM},
    {SYS_io_uring_setup, SYSTEM},
#endif
    {SYS_open_by_handle_at, SYSTEM},
    {SYS_bpf, SYSTEM},
    {SYS_perf_event_open, SYSTEM},
    {SYS_userfaultfd, SYSTEM},
    {SYS_add_key, SYSTEM},
    {SYS_request_key, SYSTEM},
    {SYS_keyctl, SYSTEM},
};

enum { CALLS = sizeof refused / sizeof *refused, MOST_STEPS = 2 * CALLS + 40 };

static struct sock_filter steps[MOST_STEPS];
static unsigned short count;

static void step(unsigned short code, uint32_t value, unsigned char if_so, unsigned char if_not)
{
    steps[count++] = (struct sock_filter){code, if_so, if_not, value};
}

static void load_word(size_t offset)
{
    step(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void load_argument(int number)
{
    const size_t lower_half = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4;
    load_word(offsetof(struct seccomp_data, args) + 8 * (size_t)number + lower_half);
}

static void answer(uint32_t action)
{
    step(BPF_RET | BPF_K, action, 0, 0);
}

static void refuse(enum refusal refusal)
{
    answer(SECCOMP_RET_TRAP | (uint32_t)refusal);
}

/* For the call of this number alone, answer by its argument: a process, which must be this one. */
static void only_own_process(int call, int argument, int or_zero, enum refusal refusal)
{
    load_word(offsetof(struct seccomp_data, nr));
    step(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, (unsigned char)(or_zero ? 5 : 4));
    load_argument(argument);
    if (or_zero)
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    step(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 1);
    answer(SECCOMP_RET_ALLOW);
    refuse(refusal);
}

static void make_filter(void)
{
    count = 0;
    load_word(offsetof(struct seccomp_data, arch));
    step(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    refuse(SYSTEM);
    load_word(offsetof(struct seccomp_data, nr));
    step(BPF_JMP | BPF_JGE | BPF_K, OTHER_ABI, 0, 1);
    refuse(SYSTEM);
    for (size_t i = 0; i < CALLS; i++) {
        step(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused[i].number, 0, 1);
        refuse(refused[i].refusal);
    }
    /* A filter cannot see the arguments of clone3. Without it, the C library calls clone. */
#ifdef SYS_clone3
    step(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    answer(SECCOMP_RET_ERRNO | ENOSYS);
#endif
    step(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    load_argument(0);
    step(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
    answer(SECCOMP_RET_ALLOW);
    refuse(PROCESS);
    only_own_process(SYS_tgkill, 0, 0, SIGNAL);
    only_own_process(SYS_rt_tgsigqueueinfo, 0, 0, SIGNAL);
    only_own_process(SYS_prlimit64, 0, 1, SYSTEM);
    answer(SECCOMP_RET_ALLOW);
}

int confine_calls(void)
{
    /* MPI_Comm_spawn would let mpirun start what this process may not start. All ranks run, so
     * mpirun has no more processes to start. */
    const struct rlimit none = {0, 0};
    if (prlimit(getppid(), RLIMIT_NPROC, &none, NULL) != 0)
        return harness_fail("mpirun cannot be confined: %s", strerror(errno));
    make_filter();
    struct sock_fprog program = {.len = count, .filter = steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0)
        return 0;
    return is_lacking(errno) ? 0 : harness_fail("seccomp: %s", strerror(errno));
}
#else
int confine_calls(void)
{
    return 0;
}
#endif
