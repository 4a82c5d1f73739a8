/* Frames waiting until they are due. */
#include "relay.h"
#include <stdlib.h>
#include <string.h>

/* More than what is in transit on a link of 10 Gbit/s and 10 ms. */
enum { ROOM_BYTES = 32 << 20 };

int queue_add(struct queue *queue, const unsigned char *data, size_t bytes, int64_t due)
{
    if (queue->bytes + bytes > ROOM_BYTES)
        return -1;
    struct frame *frame = malloc(sizeof *frame + bytes);
    if (frame == NULL)
        return -1;
    *frame = (struct frame){.due = due, .bytes = bytes};
    memcpy(frame->data, data, bytes);
    /* A frame never overtakes another. */
    if (queue->last != NULL && queue->last->due > due)
        frame->due = queue->last->due;
    if (queue->last != NULL)
        queue->last->next = frame;
    else
        queue->first = frame;
    queue->last = frame;
    queue->bytes += bytes;
    return 0;
}

void queue_drop_first(struct queue *queue)
{
    struct frame *frame = queue->first;
    queue->first = frame->next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->bytes -= frame->bytes;
    free(frame);
}
