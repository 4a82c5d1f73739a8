/* What buffers and files hold: from the seed of the case or, where the answer's process must not know
 * that, from mpilab-seeds (programs/seeds). */
#define _GNU_SOURCE
#include "../../programs/seeds/seeds.h"
#include "harness.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WORDS_AT_A_TIME = 1 << 10 };

/* The connection; -1 if seeds come with the cases. */
static int source = -1;

int get_contents_from(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >=
        sizeof address.sun_path)
        return harness_fail("%s: too long a path for a socket", path);
    source = socket(AF_UNIX, SOCK_STREAM, 0);
    if (source < 0 || connect(source, (struct sockaddr *)&address, sizeof address) != 0)
        return harness_fail("%s: %s", path, strerror(errno));
    return 0;
}

static int receive(void *memory, size_t bytes)
{
    for (char *to = memory; bytes > 0;) {
        const ssize_t got = recv(source, to, bytes, MSG_WAITALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return harness_fail("mpilab-seeds refused the contents of a buffer");
        to += got;
        bytes -= (size_t)got;
    }
    return 0;
}

int fill_contents(void *memory, int64_t bytes, const struct mpilab_case *order, long call, int rank,
                  enum stream stream, int64_t first)
{
    const int64_t count = (bytes + (int64_t)sizeof(uint64_t) - 1) / (int64_t)sizeof(uint64_t);
    const struct seeds_request request = {order->id, call, rank, stream, first, count};
    const int is_local = source < 0;
    if (!is_local && send(source, &request, sizeof request, MSG_NOSIGNAL) != sizeof request)
        return harness_fail("mpilab-seeds is gone: %s", strerror(errno));
    /* By way of an array of words: the memory need not be aligned, nor hold the last one wholly. */
    uint64_t words[WORDS_AT_A_TIME];
    for (int64_t done = 0; done < count; done += WORDS_AT_A_TIME) {
        const int64_t left = count - done, at = done * (int64_t)sizeof *words;
        const int64_t some = left < WORDS_AT_A_TIME ? left : WORDS_AT_A_TIME;
        const int64_t rest = bytes - at, whole = some * (int64_t)sizeof *words;
        if (is_local)
            fill_words(words, some, seed_of_call(order->seed, call), rank, stream, first + done);
        else if (receive(words, (size_t)whole) != 0)
            return 1;
        memcpy((char *)memory + at, words, (size_t)(rest < whole ? rest : whole));
    }
    forget(words, sizeof words);
    return 0;
}
