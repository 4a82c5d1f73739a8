/* Redirects what a rank prints to a separate file, in place of harness/printed.c: ranks share the
 * process and its descriptors. So this rank's copy of the program has its own stdout and stderr,
 * and its own printf and puts, which write to them; a file is created only when something is
 * printed. Messages of the C library itself ("free(): invalid pointer") go to the log of the
 * run. */
#define _GNU_SOURCE
#include "../harness/harness.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef stdout
#undef stderr
/* Those of libc have the same names; this object is linked with -Bsymbolic. */
FILE *stdout, *stderr;

static char path[PATH_MAX]; /* "" while output is not captured */

/* No file is kept open: there may be thousands of ranks. */
static ssize_t append(void *cookie, const char *text, size_t bytes)
{
    (void)cookie;
    const int file =
        *path == '\0' ? dup(STDERR_FILENO) : open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    const ssize_t written = file < 0 ? 0 : write(file, text, bytes);
    if (file >= 0)
        close(file);
    return written < 0 ? 0 : written;
}

__attribute__((constructor)) static void open_streams(void)
{
    const cookie_io_functions_t functions = {.write = append};
    FILE **const streams[] = {&stdout, &stderr};
    for (int i = 0; i < 2; i++) {
        *streams[i] = fopencookie(NULL, "w", functions);
        if (*streams[i] == NULL)
            abort();
        setvbuf(*streams[i], NULL, _IONBF, 0); /* keeps output right before a crash */
    }
}

int begin_printing(struct printing *printing, const char *file)
{
    *printing = (struct printing){-1, -1};
    unlink(file);
    return snprintf(path, sizeof path, "%s", file) < (int)sizeof path
               ? 0
               : harness_fail("%s: the name is too long", file);
}

void end_printing(struct printing *printing)
{
    (void)printing;
    *path = '\0';
}

int vprintf(const char *format, va_list values)
{
    return vfprintf(stdout, format, values);
}

int printf(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int printed = vprintf(format, values);
    va_end(values);
    return printed;
}

int puts(const char *text)
{
    return fprintf(stdout, "%s\n", text);
}

int putchar(int letter)
{
    return fputc(letter, stdout);
}

void perror(const char *text)
{
    fprintf(stderr, "%s: %s\n", text, strerror(errno));
}

void __assert_fail(const char *claim, const char *file, unsigned line, const char *function)
{
    fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, claim);
    abort();
}
