/* A reduction up any tree, in pieces. */
#include "blocks.h"
#include "tree.h"
#include <stdlib.h>

/* What this rank reduces. Its incoming messages are numbered: first those of piece 0, one from each
 * child, the last child first; then those of piece 1, and so on. */
struct reduction {
    const struct mpilab_tree *tree;
    struct mpilab_segments cut;
    const void *own;
    void *recvbuf;
    void *room; /* four pieces: two alternating results, two alternating incoming ones */
    int count;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
};

static void *result_of(const struct reduction *reduction, int piece)
{
    const int is_root = reduction->tree->parent == MPI_PROC_NULL;
    return is_root
               ? block(reduction->recvbuf, piece, reduction->cut.elements, reduction->datatype)
               : block(reduction->room, piece % 2, reduction->cut.elements, reduction->datatype);
}

/* The first message of a piece goes where the result belongs, unless our own data is there. */
static void *place_of_message(const struct reduction *reduction, int number)
{
    const int is_first = number % reduction->tree->children == 0;
    if (is_first && reduction->own != MPI_IN_PLACE)
        return result_of(reduction, number / reduction->tree->children);
    return block(reduction->room, 2 + number % 2, reduction->cut.elements, reduction->datatype);
}

static int start_receiving(const struct reduction *reduction, int number, MPI_Request *request)
{
    const int children = reduction->tree->children;
    return MPI_Irecv(place_of_message(reduction, number),
                     mpilab_piece(&reduction->cut, number / children, reduction->count),
                     reduction->datatype, reduction->tree->child[children - 1 - number % children],
                     TAG, reduction->comm, request);
}

/* MPI_Reduce_local(a, b) puts a op b into b, so operands are combined from last to first. */
static int take_in(const struct reduction *reduction, int number)
{
    const int piece = number / reduction->tree->children;
    const void *message = place_of_message(reduction, number);
    void *result = result_of(reduction, piece);
    const void *left = message == result ? block(reduction->own, piece, reduction->cut.elements,
                                                 reduction->datatype)
                                         : message;
    return MPI_Reduce_local(left, result, mpilab_piece(&reduction->cut, piece, reduction->count),
                            reduction->datatype, reduction->op);
}

static int hand_up(const struct reduction *reduction, int piece)
{
    const struct mpilab_tree *tree = reduction->tree;
    const void *result = tree->children > 0 ? result_of(reduction, piece)
                                            : block(reduction->own, piece, reduction->cut.elements,
                                                    reduction->datatype);
    return MPI_Send(result, mpilab_piece(&reduction->cut, piece, reduction->count),
                    reduction->datatype, tree->parent, TAG, reduction->comm);
}

static int reduce_pieces(const struct reduction *reduction)
{
    const int children = reduction->tree->children;
    const int messages = reduction->cut.pieces * children;
    /* Message i comes in by request i mod 2, while message i-1 is being combined. */
    MPI_Request incoming[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int err = MPI_SUCCESS, number = 0;
    if (messages > 0)
        err = start_receiving(reduction, 0, &incoming[0]);
    for (int piece = 0; piece < reduction->cut.pieces && err == MPI_SUCCESS; piece++) {
        for (; number < (piece + 1) * children && err == MPI_SUCCESS; number++) {
            if (number + 1 < messages)
                err = start_receiving(reduction, number + 1, &incoming[(number + 1) % 2]);
            if (err == MPI_SUCCESS)
                err = MPI_Wait(&incoming[number % 2], MPI_STATUS_IGNORE);
            if (err == MPI_SUCCESS)
                err = take_in(reduction, number);
        }
        if (err == MPI_SUCCESS && reduction->tree->parent != MPI_PROC_NULL)
            err = hand_up(reduction, piece);
    }
    if (err != MPI_SUCCESS)
        mpilab_abandon(2, incoming);
    return err;
}

int mpilab_reduce_along(const struct mpilab_tree *tree, const void *sendbuf, void *recvbuf,
                        int count, MPI_Datatype datatype, MPI_Op op, long segment_bytes,
                        MPI_Comm comm)
{
    const int is_alone = tree->parent == MPI_PROC_NULL && tree->children == 0;
    if (is_alone)
        return place_own_block(sendbuf, count, datatype, recvbuf, count, datatype, 0);

    const struct mpilab_segments cut = mpilab_cut(count, datatype, segment_bytes);
    struct mpilab_room room = {NULL, NULL};
    int err = MPI_SUCCESS;
    if (tree->children > 0)
        err = mpilab_make_room(4, cut.elements, datatype, &room);
    if (err == MPI_SUCCESS)
        err = reduce_pieces(&(struct reduction){tree, cut, sendbuf, recvbuf, room.origin, count,
                                                datatype, op, comm});
    free(room.memory);
    return err;
}
