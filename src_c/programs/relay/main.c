/* mpilab-relay ONE,OTHER,MICROSECONDS ...
 *
 * Forwards frames between each ONE and OTHER, in both directions, after that many microseconds.
 * Prints "ready" once it does. It runs until it is killed. Needs CAP_NET_RAW in its network
 * namespace.
 */
#define _GNU_SOURCE
#include "relay.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

static void open_link(const char *argument, struct way ways[static 2])
{
    char one[32], other[32];
    double microseconds;
    if (sscanf(argument, "%31[^,],%31[^,],%lf", one, other, &microseconds) != 3 ||
        !(microseconds >= 0 && microseconds < 1e9)) {
        fprintf(stderr,
                "mpilab-relay: '%s' is not of the form ONE,OTHER,MICROSECONDS, e.g. up0,dn0,250\n",
                argument);
        exit(2);
    }
    const int64_t latency = (int64_t)(microseconds * 1000);
    const int left = open_interface(one), right = open_interface(other);
    ways[0] = (struct way){.from = left, .to = right, .latency = latency};
    ways[1] = (struct way){.from = right, .to = left, .latency = latency};
}

static void relay(struct way *ways, struct pollfd *heard, int count)
{
    for (;;) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < count; i++) {
            const int64_t due = pass_on_due_frames(&ways[i]);
            if (due < next)
                next = due;
        }
        struct timespec wait;
        const int64_t left = next - now();
        if (next != INT64_MAX && left > 0)
            wait = (struct timespec){left / 1000000000, left % 1000000000};
        else
            wait = (struct timespec){0, 0};
        if (ppoll(heard, (nfds_t)count, next == INT64_MAX ? NULL : &wait, NULL) <= 0)
            continue;
        for (int i = 0; i < count; i++)
            if (heard[i].revents != 0)
                take_frames(&ways[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: mpilab-relay ONE,OTHER,MICROSECONDS ...\n", stderr);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Otherwise timers are up to 50 µs late. If locking memory is not allowed, the relay works
     * without. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    (void)mlockall(MCL_CURRENT);

    const int count = 2 * (argc - 1);
    struct way *ways = calloc((size_t)count, sizeof *ways);
    struct pollfd *heard = calloc((size_t)count, sizeof *heard);
    if (ways == NULL || heard == NULL) {
        fputs("mpilab-relay: no memory\n", stderr);
        return 1;
    }
    for (int i = 1; i < argc; i++)
        open_link(argv[i], &ways[2 * (i - 1)]);
    for (int i = 0; i < count; i++)
        heard[i] = (struct pollfd){.fd = ways[i].from, .events = POLLIN};
    puts("ready");
    fflush(stdout);
    relay(ways, heard, count);
}
