/* Redirects to a file what the kernel prints, including messages of glibc ("free(): invalid
 * pointer") and of a failed assert, and output right before a crash. */
#define _GNU_SOURCE
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The new buffer of stdout: its first one is lost once it is unbuffered. */
static char buffer[BUFSIZ];

int begin_printing(struct printing *printing, const char *path)
{
    *printing = (struct printing){-1, -1};
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0)
        return harness_fail("%s: %s", path, strerror(errno));
    fflush(stdout);
    fflush(stderr);
    /* Without a buffer: otherwise an unfinished line would be lost with the process. */
    setvbuf(stdout, NULL, _IONBF, 0);
    printing->stdout_before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    printing->stderr_before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    close(file);
    return 0;
}

static void give_back(int number, int *before)
{
    /* A descriptor that was closed before is closed again. */
    if (*before >= 0)
        dup2(*before, number);
    close(*before >= 0 ? *before : number);
    *before = -1;
}

void end_printing(struct printing *printing)
{
    fflush(stdout);
    fflush(stderr);
    give_back(STDOUT_FILENO, &printing->stdout_before);
    give_back(STDERR_FILENO, &printing->stderr_before);
    setvbuf(stdout, buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof buffer);
}
