/* One direction of a link: raw packets in, raw packets out (see packet(7)). */
#define _GNU_SOURCE
#include "relay.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    LARGEST_FRAME = 1 << 17,
    BUFFER_BYTES = 8 << 20,
    FRAMES_AT_ONCE = 64, /* then the other ways get their turn */
};

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static void end_of(const char *what, const char *name)
{
    fprintf(stderr, "mpilab-relay: %s %s: %s\n", what, name, strerror(errno));
    exit(1);
}

static void set(int socket, int level, int option, int value, const char *what)
{
    if (setsockopt(socket, level, option, &value, sizeof value) != 0)
        end_of("cannot set", what);
}

int open_interface(const char *name)
{
    const int file = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0)
        end_of("no raw socket for", name);
    set(file, SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
    /* Frames that we forward here must not come back to us. */
    set(file, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
    set(file, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
    set(file, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES, "SO_RCVBUF");
    set(file, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES, "SO_SNDBUF");
    const struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = (int)if_nametoindex(name),
    };
    if (address.sll_ifindex == 0 || bind(file, (const void *)&address, sizeof address) != 0)
        end_of("no interface", name);
    return file;
}

/* How long ago the kernel got this frame, at most `longest`: it was already in transit while we
 * slept. */
static int64_t age(struct msghdr *message, int64_t longest)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
        const int64_t stamped = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
        const int64_t passed = read_clock(CLOCK_REALTIME) - stamped;
        return passed < 0 ? 0 : passed > longest ? longest : passed;
    }
    return 0;
}

void take_frames(struct way *way)
{
    static unsigned char data[LARGEST_FRAME];
    _Alignas(struct cmsghdr) char parts[128];
    for (int i = 0; i < FRAMES_AT_ONCE; i++) {
        struct iovec place = {data, sizeof data};
        struct msghdr message = {
            .msg_iov = &place,
            .msg_iovlen = 1,
            .msg_control = parts,
            .msg_controllen = sizeof parts,
        };
        const ssize_t bytes = recvmsg(way->from, &message, MSG_DONTWAIT);
        if (bytes < 0)
            return;
        /* No room: the frame is lost, and TCP will send it again. */
        (void)queue_add(&way->waiting, data, (size_t)bytes,
                        now() - age(&message, way->latency) + way->latency);
    }
}

int64_t pass_on_due_frames(struct way *way)
{
    const struct frame *frame;
    while ((frame = way->waiting.first) != NULL && frame->due <= now()) {
        /* A frame that the interface does not accept now is lost, too. */
        const ssize_t written = write(way->to, frame->data, frame->bytes);
        (void)written;
        queue_drop_first(&way->waiting);
    }
    return frame == NULL ? INT64_MAX : frame->due;
}
