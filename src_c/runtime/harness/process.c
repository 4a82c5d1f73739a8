/* What the operating system counts for this process: reads, and memory, which can be limited. Linux
 * reports it under /proc/self; elsewhere it is unknown. */
#define _GNU_SOURCE
#include "access.h"
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096 };

/* The contents of a small file, in one read; "" if there is none. */
static void read_text(const char *path, char text[static TEXT_BYTES])
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? 0 : read(file, text, TEXT_BYTES - 1);
    if (file >= 0)
        close(file);
    text[bytes > 0 ? bytes : 0] = '\0';
}

/* The number after `key` at the beginning of a line, or UNKNOWN. */
static int64_t number_after(const char *text, const char *key)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) == 0)
            return strtoll(line + strlen(key), NULL, 10);
    }
    return UNKNOWN;
}

struct process_io process_io(void)
{
    char text[TEXT_BYTES];
    read_text("/proc/self/io", text);
    return (struct process_io){number_after(text, "rchar:"), number_after(text, "syscr:"),
                               number_after(text, "read_bytes:"), (int64_t)strlen(text)};
}

static int64_t memory(const char *key)
{
    char text[TEXT_BYTES];
    read_text("/proc/self/status", text);
    const int64_t kibibytes = number_after(text, key);
    return kibibytes == UNKNOWN ? UNKNOWN : kibibytes * 1024;
}

int64_t begin_memory_peak(void)
{
#ifdef __GLIBC__
    /* Memory freed by earlier calls may still be resident: a call that reused it would seem to need
     * none. */
    malloc_trim(0);
#endif
    /* "5" resets the high-water mark (proc_pid_clear_refs(5)); a sandbox may not allow it. */
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    const int is_reset = file >= 0 && write(file, "5", 1) == 1;
    if (file >= 0)
        close(file);
    return is_reset ? memory("VmRSS:") : UNKNOWN;
}

int64_t memory_peak(void)
{
    return memory("VmHWM:");
}

/* The limit from before limit_memory. */
static struct rlimit unlimited;
static int is_limited;

int limit_memory(int64_t bytes)
{
#ifdef __GLIBC__
    malloc_trim(0); /* what malloc keeps of freed memory would be had in addition */
#endif
    /* Open MPI has reserved much already, so the limit is relative. Only the soft one is lowered, which
     * can be raised again. */
    const int64_t now = memory("VmSize:");
    if (now == UNKNOWN)
        return harness_fail("memory=%lld: needs /proc, as on Linux", (long long)bytes);
    if (getrlimit(RLIMIT_AS, &unlimited) != 0)
        return harness_fail("memory=%lld: %s", (long long)bytes, strerror(errno));
    const rlim_t wanted = (rlim_t)(now + bytes);
    if (unlimited.rlim_cur != RLIM_INFINITY && wanted > unlimited.rlim_cur)
        return harness_fail("memory=%lld: this machine allows %lld bytes of address space only",
                            (long long)bytes, (long long)unlimited.rlim_cur);
    const struct rlimit limit = {wanted, unlimited.rlim_max};
    is_limited = setrlimit(RLIMIT_AS, &limit) == 0;
    return is_limited ? 0 : harness_fail("memory=%lld: %s", (long long)bytes, strerror(errno));
}

void unlimit_memory(void)
{
    if (is_limited)
        setrlimit(RLIMIT_AS, &unlimited);
    is_limited = 0;
}
