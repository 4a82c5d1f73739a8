/* The relay: passes network frames on between pairs of interfaces, a fixed time after they came.
 *
 * For emulated hosts (mpilab/hosts/emulated) where the kernel has no netem. Links are pairs of virtual
 * interfaces; one with latency is two pairs, and the relay stands between:
 *
 *     host eth0 ─────── e0r  »  h0r ─────── h0 switch
 *                           «
 *                     one way each: take a frame, keep it until it is due, pass it on
 *
 * Times are in nanoseconds.
 */
#ifndef MPILAB_RELAY_H
#define MPILAB_RELAY_H

#include <stddef.h>
#include <stdint.h>

/* A frame that waits, with the header that says how the kernel may cut it (struct virtio_net_hdr:
 * TCP hands over up to 64 KiB in one piece). */
struct frame {
    int64_t due;
    struct frame *next;
    size_t bytes;
    unsigned char data[];
};

/* Frames that wait, first in, first out. */
struct queue {
    struct frame *first, *last;
    size_t bytes;
};

/* Takes a copy; 0, or -1 where there is no more room: then the frame is lost, as on a real link. */
int queue_add(struct queue *queue, const unsigned char *data, size_t bytes, int64_t due);
/* Forgets the first frame. */
void queue_drop_first(struct queue *queue);

/* One direction of a link. */
struct way {
    int from, to; /* sockets */
    int64_t latency;
    struct queue waiting;
};

/* A socket that takes, and gives, the frames of an interface; ends the program where there is no
 * such interface, or raw sockets are not allowed. */
int open_interface(const char *name);
/* Takes all frames that have come. */
void take_frames(struct way *way);
/* Passes on all frames that are due; when the next one will be, or INT64_MAX. */
int64_t pass_on_due_frames(struct way *way);

int64_t now(void);

#endif
