/* A reduction up any tree, with several pieces in transit at once.
 *
 * Every piece has a slot with room for one message from each child; the result of an inner rank
 * replaces the first child's message. Half of the slots wait for messages, half hold results that
 * are being sent up.
 *
 *   slots       | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |      while piece 4 is combined:
 *                 results to be     messages             8 can come once 0 is gone
 *                 handed up         to come
 */
#include "blocks.h"
#include "tree.h"
#include <stdlib.h>

enum { SLOTS = 2 * MPILAB_AHEAD };

struct stream {
    const struct mpilab_tree *tree;
    const struct mpilab_segments *cut;
    const void *own;
    void *recvbuf, *room;
    int count;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
    MPI_Request incoming[SLOTS][MPILAB_MOST_CHILDREN], outgoing[SLOTS];
};

static int is_root(const struct stream *stream)
{
    return stream->tree->parent == MPI_PROC_NULL;
}

static void *part(const struct stream *stream, const void *buffer, int index)
{
    return block(buffer, index, stream->cut->elements, stream->datatype);
}

static int length(const struct stream *stream, int piece)
{
    return mpilab_piece(stream->cut, piece, stream->count);
}

/* The first child's message goes where the result belongs, unless our own data is there. */
static void *place_of_message(const struct stream *stream, int piece, int child)
{
    if (is_root(stream) && child == 0 && stream->own != MPI_IN_PLACE)
        return part(stream, stream->recvbuf, piece);
    return part(stream, stream->room, piece % SLOTS * stream->tree->children + child);
}

static const void *result_of(const struct stream *stream, int piece)
{
    if (stream->tree->children == 0)
        return part(stream, stream->own, piece);
    if (is_root(stream))
        return part(stream, stream->recvbuf, piece);
    return place_of_message(stream, piece, 0);
}

static int start_receiving(struct stream *stream, int piece)
{
    int err = MPI_SUCCESS;
    for (int i = 0; i < stream->tree->children && err == MPI_SUCCESS; i++)
        err = MPI_Irecv(place_of_message(stream, piece, i), length(stream, piece), stream->datatype,
                        stream->tree->child[i], TAG, stream->comm,
                        &stream->incoming[piece % SLOTS][i]);
    return err;
}

static int take_in(struct stream *stream, int piece)
{
    void *result = (void *)result_of(stream, piece);
    int err = MPI_SUCCESS;
    for (int i = 0; i < stream->tree->children && err == MPI_SUCCESS; i++) {
        const void *message = place_of_message(stream, piece, i);
        const void *left = message == result ? part(stream, stream->own, piece) : message;
        err = MPI_Reduce_local(left, result, length(stream, piece), stream->datatype, stream->op);
    }
    return err;
}

static int hand_up(struct stream *stream, int piece)
{
    return MPI_Isend(result_of(stream, piece), length(stream, piece), stream->datatype,
                     stream->tree->parent, TAG, stream->comm, &stream->outgoing[piece % SLOTS]);
}

static int reduce_pieces(struct stream *stream)
{
    const int pieces = stream->cut->pieces, hands_up = !is_root(stream);
    int err = MPI_SUCCESS;
    for (int i = 0; i < pieces && i < MPILAB_AHEAD && err == MPI_SUCCESS; i++)
        err = start_receiving(stream, i);
    /* After the last piece, wait for those that are still being sent up. */
    for (int i = 0; i < pieces + MPILAB_AHEAD && err == MPI_SUCCESS; i++) {
        const int gone = i - MPILAB_AHEAD;
        if (hands_up && gone >= 0 && gone < pieces)
            err = MPI_Wait(&stream->outgoing[gone % SLOTS], MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS && i + MPILAB_AHEAD < pieces)
            err = start_receiving(stream, i + MPILAB_AHEAD);
        if (i >= pieces)
            continue;
        if (err == MPI_SUCCESS)
            err = MPI_Waitall(stream->tree->children, stream->incoming[i % SLOTS],
                              MPI_STATUSES_IGNORE);
        if (err == MPI_SUCCESS)
            err = take_in(stream, i);
        if (err == MPI_SUCCESS && hands_up)
            err = hand_up(stream, i);
    }
    return err;
}

int mpilab_stream_up(const struct mpilab_tree *tree, const void *sendbuf, void *recvbuf, int count,
                     MPI_Datatype datatype, MPI_Op op, const struct mpilab_segments *cut,
                     MPI_Comm comm)
{
    const int is_alone = tree->parent == MPI_PROC_NULL && tree->children == 0;
    if (is_alone)
        return place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);

    struct mpilab_room room = {NULL, NULL};
    const int slots = cut->pieces < SLOTS ? cut->pieces : SLOTS;
    int err = MPI_SUCCESS;
    if (tree->children > 0)
        err = mpilab_make_room(slots * tree->children, cut->elements, datatype, &room);
    if (err == MPI_SUCCESS) {
        struct stream stream = {.tree = tree,
                                .cut = cut,
                                .own = sendbuf,
                                .recvbuf = recvbuf,
                                .room = room.origin,
                                .count = count,
                                .datatype = datatype,
                                .op = op,
                                .comm = comm};
        for (int i = 0; i < SLOTS; i++)
            mpilab_no_requests(tree->children, stream.incoming[i]);
        mpilab_no_requests(SLOTS, stream.outgoing);
        err = reduce_pieces(&stream);
        for (int i = 0; i < SLOTS && err != MPI_SUCCESS; i++)
            mpilab_abandon(tree->children, stream.incoming[i]);
        if (err != MPI_SUCCESS && !mpilab_leave_sends(SLOTS, stream.outgoing))
            room.memory = NULL;
    }
    free(room.memory);
    return err;
}
