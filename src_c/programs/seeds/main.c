/* mpilab-seeds DESCRIPTOR RANKS: give the ranks of a run the contents of their buffers.
 *
 * The answer's code stays in a rank's process from one case to the next. If the seed of a case came
 * into that process, code left behind by an earlier case could catch it and compute the right results
 * without a message. So seeds stay here, in a process that ranks can neither see nor trace. Standard
 * input has a line "ID SEED" for each case, in the order in which they run.
 *
 * DESCRIPTOR is a socket that listens. RANKS ranks connect before the answer is loaded; after that,
 * nobody else can. Each gets the contents of one rank in each case, and of no earlier case once it
 * has asked for a later one.
 */
#define _GNU_SOURCE
#include "../../runtime/harness/harness.h"
#include "seeds.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { WORDS_AT_A_TIME = 1 << 13 };

static struct known {
    int64_t id;
    uint64_t seed;
} *cases;
static size_t case_count;

/* What a connection was given last: the index of a case, and the rank in it. */
struct client {
    size_t at;
    int32_t rank;
};

static int read_cases(void)
{
    struct known one;
    while (scanf("%" SCNd64 " %" SCNu64, &one.id, &one.seed) == 2) {
        struct known *const more = realloc(cases, (case_count + 1) * sizeof *cases);
        if (more == NULL)
            return -1;
        cases = more;
        cases[case_count++] = one;
    }
    return feof(stdin) ? 0 : -1;
}

/* The seed of a request, if this client may have it: NULL otherwise. */
static const struct known *granted(struct client *client, const struct seeds_request *request)
{
    for (size_t i = client->at; i < case_count; i++) {
        if (cases[i].id != request->id)
            continue;
        if (request->stream == FILE_STREAM) /* all ranks read the file */
            return &cases[i];
        if (i == client->at && client->rank >= 0 && client->rank != request->rank)
            return NULL;
        *client = (struct client){i, request->rank};
        return &cases[i];
    }
    return NULL;
}

static int write_all(int to, const void *memory, size_t bytes)
{
    for (const char *from = memory; bytes > 0;) {
        const ssize_t written = send(to, from, bytes, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        from += written;
        bytes -= (size_t)written;
    }
    return 0;
}

/* Answer the next request; -1 if the client is to be given up. */
static int serve(int connection, struct client *client)
{
    static uint64_t words[WORDS_AT_A_TIME];
    struct seeds_request request;
    if (recv(connection, &request, sizeof request, MSG_WAITALL) != (ssize_t)sizeof request ||
        request.rank < 0 || request.call < 0 || request.first < 1 || request.count < 0 ||
        request.stream < SEND_STREAM || request.stream > FILE_STREAM)
        return -1;
    const struct known *const known = granted(client, &request);
    if (known == NULL)
        return -1;
    const uint64_t seed = seed_of_call(known->seed, (long)request.call);
    for (int64_t done = 0; done < request.count;) {
        const int64_t left = request.count - done;
        const int64_t count = left < WORDS_AT_A_TIME ? left : WORDS_AT_A_TIME;
        fill_words(words, count, seed, request.rank, (enum stream)request.stream,
                   request.first + done);
        if (write_all(connection, words, (size_t)count * sizeof *words) != 0)
            return -1;
        done += count;
    }
    return 0;
}

static void serve_all(struct pollfd *connections, struct client *clients, nfds_t ranks)
{
    for (nfds_t open = ranks; open > 0;) {
        if (poll(connections, ranks, -1) < 0 && errno != EINTR)
            return;
        for (nfds_t i = 0; i < ranks; i++) {
            if (connections[i].fd < 0 || connections[i].revents == 0)
                continue;
            if (serve(connections[i].fd, &clients[i]) != 0) {
                close(connections[i].fd);
                connections[i].fd = -1; /* poll ignores it */
                open--;
            }
        }
    }
}

int main(int argc, char **argv)
{
    const int server = argc == 3 ? (int)strtol(argv[1], NULL, 10) : -1;
    const long ranks = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (ranks <= 0) {
        fprintf(stderr, "usage: mpilab-seeds DESCRIPTOR RANKS\n");
        return 2;
    }
#ifdef __linux__
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no other process of this user can read its memory */
#endif
    struct pollfd *const connections = calloc((size_t)ranks, sizeof *connections);
    struct client *const clients = calloc((size_t)ranks, sizeof *clients);
    if (connections == NULL || clients == NULL || read_cases() != 0) {
        fprintf(stderr, "mpilab-seeds: the list of cases cannot be read\n");
        return 1;
    }
    for (long i = 0; i < ranks; i++) {
        connections[i] = (struct pollfd){.fd = accept(server, NULL, NULL), .events = POLLIN};
        clients[i].rank = -1;
        if (connections[i].fd < 0) {
            fprintf(stderr, "mpilab-seeds: no rank can connect: %s\n", strerror(errno));
            return 1;
        }
    }
    close(server);
    serve_all(connections, clients, (nfds_t)ranks);
    return 0;
}
