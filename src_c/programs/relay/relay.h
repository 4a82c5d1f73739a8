/* The relay: forwards network frames between pairs of interfaces, a fixed time after they arrive.
 *
 * For emulated hosts (mpilab/hosts/emulated) where the kernel has no netem. Links are pairs of
 * virtual interfaces; a link with latency is two pairs with the relay between them:
 *
 *     host eth0 ─────── e0r  »  h0r ─────── h0 switch
 *                           «
 *                     one way each: take a frame, keep it until it is due, forward it
 *
 * Times are in nanoseconds.
 */
#ifndef MPILAB_RELAY_H
#define MPILAB_RELAY_H

#include <stddef.h>
#include <stdint.h>

/* A waiting frame, with the header that says how the kernel may split it (struct virtio_net_hdr:
 * TCP hands over up to 64 KiB in one piece). */
struct frame {
    int64_t due;
    struct frame *next;
    size_t bytes;
    unsigned char data[];
};

/* Waiting frames, first in, first out. */
struct queue {
    struct frame *first, *last;
    size_t bytes;
};

/* Takes a copy. Returns 0, or -1 if there is no more room: then the frame is lost, as on a real
 * link. */
int queue_add(struct queue *queue, const unsigned char *data, size_t bytes, int64_t due);
/* Removes the first frame. */
void queue_drop_first(struct queue *queue);

/* One direction of a link. */
struct way {
    int from, to; /* sockets */
    int64_t latency;
    struct queue waiting;
};

/* A socket that receives and sends the frames of an interface; ends the program if there is no such
 * interface, or raw sockets are not allowed. */
int open_interface(const char *name);
/* Takes all frames that have arrived. */
void take_frames(struct way *way);
/* Forwards all frames that are due; returns when the next one will be, or INT64_MAX. */
int64_t pass_on_due_frames(struct way *way);

int64_t now(void);

#endif
