/* A broadcast down any tree, with several pieces in transit at once.
 *
 * Piece i comes in by request i mod AHEAD, and goes out by the requests of i mod AHEAD, once piece
 * i - AHEAD has been sent.
 *
 *   incoming    | 4 | 5 | 6 | 7 |         posted, while waiting for piece 3
 *   outgoing    | 0 | 1 | 2 |   |         to all children; 4 can leave once 0 is gone
 */
#include "tree.h"

struct stream {
    const struct mpilab_tree *tree;
    const struct mpilab_segments *cut;
    void *buffer;
    int count;
    MPI_Datatype datatype;
    MPI_Comm comm;
    MPI_Request incoming[MPILAB_AHEAD], outgoing[MPILAB_AHEAD][MPILAB_MOST_CHILDREN];
};

static int start_receiving(struct stream *stream, int piece)
{
    return MPI_Irecv(block(stream->buffer, piece, stream->cut->elements, stream->datatype),
                     mpilab_piece(stream->cut, piece, stream->count), stream->datatype,
                     stream->tree->parent, TAG, stream->comm,
                     &stream->incoming[piece % MPILAB_AHEAD]);
}

static int start_sending(struct stream *stream, int piece)
{
    int err = MPI_SUCCESS;
    for (int i = 0; i < stream->tree->children && err == MPI_SUCCESS; i++)
        err = MPI_Isend(block(stream->buffer, piece, stream->cut->elements, stream->datatype),
                        mpilab_piece(stream->cut, piece, stream->count), stream->datatype,
                        stream->tree->child[i], TAG, stream->comm,
                        &stream->outgoing[piece % MPILAB_AHEAD][i]);
    return err;
}

static int finish_sending(struct stream *stream, int piece)
{
    return MPI_Waitall(stream->tree->children, stream->outgoing[piece % MPILAB_AHEAD],
                       MPI_STATUSES_IGNORE);
}

int mpilab_stream_down(const struct mpilab_tree *tree, void *buffer, int count,
                       MPI_Datatype datatype, const struct mpilab_segments *cut, MPI_Comm comm)
{
    struct stream stream = {.tree = tree,
                            .cut = cut,
                            .buffer = buffer,
                            .count = count,
                            .datatype = datatype,
                            .comm = comm};
    const int has_parent = tree->parent != MPI_PROC_NULL;
    const int pieces = cut->pieces;
    int err = MPI_SUCCESS;
    for (int i = 0; has_parent && i < pieces && i < MPILAB_AHEAD && err == MPI_SUCCESS; i++)
        err = start_receiving(&stream, i);
    for (int i = 0; i < pieces && err == MPI_SUCCESS; i++) {
        if (has_parent)
            err = MPI_Wait(&stream.incoming[i % MPILAB_AHEAD], MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS && has_parent && i + MPILAB_AHEAD < pieces)
            err = start_receiving(&stream, i + MPILAB_AHEAD);
        if (err == MPI_SUCCESS && i >= MPILAB_AHEAD)
            err = finish_sending(&stream, i - MPILAB_AHEAD);
        if (err == MPI_SUCCESS)
            err = start_sending(&stream, i);
    }
    const int first_left = pieces > MPILAB_AHEAD ? pieces - MPILAB_AHEAD : 0;
    for (int i = first_left; i < pieces && err == MPI_SUCCESS; i++)
        err = finish_sending(&stream, i);
    return err;
}
